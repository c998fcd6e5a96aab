# nanobind from the Python that builds the package (pip's build environment has it), or else, since Debian has no
# package of it, from PyPI into the build folder.
set(nanobind_version 3.1.0)
execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
  OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE missing)
if(missing)
  set(folder "${PROJECT_BINARY_DIR}/nanobind-${nanobind_version}")
  if(NOT EXISTS "${folder}/nanobind/cmake")
    message(STATUS "Installing nanobind ${nanobind_version} from PyPI into the build folder")
    execute_process(
      COMMAND "${Python_EXECUTABLE}" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore
              --no-deps --target "${folder}" nanobind==${nanobind_version}
      RESULT_VARIABLE failed ERROR_VARIABLE said)
    if(failed)
      message(FATAL_ERROR
        "python: nanobind could not be installed (`scripts/setup python` installs pip):\n${said}")
    endif()
  endif()
  set(nanobind_ROOT "${folder}/nanobind/cmake")
endif()
find_package(nanobind ${nanobind_version} CONFIG REQUIRED)
