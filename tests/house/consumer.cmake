# Installs the build into a folder of its own, then configures, builds and runs projects that know nothing else.
set(prefix "${BUILD}/consumer/prefix")
set(build "${BUILD}/consumer/build")
set(examples "${BUILD}/consumer/examples")
file(REMOVE_RECURSE "${BUILD}/consumer")
set(flags "")
if(FLAGS)
  set(flags "-fsanitize=${FLAGS}")
endif()
foreach(command
    "--install|${BUILD}|--prefix|${prefix}"
    "-S|${CONSUMER}|-B|${build}|-G|${GENERATOR}|-DCMAKE_PREFIX_PATH=${prefix}|-DCMAKE_CXX_FLAGS=${flags}"
    "--build|${build}"
    "-S|${EXAMPLES}|-B|${examples}|-G|${GENERATOR}|-DCMAKE_PREFIX_PATH=${prefix}|-DCMAKE_CXX_FLAGS=${flags}"
    "--build|${examples}")
  string(REPLACE "|" ";" command "${command}")
  execute_process(COMMAND "${CMAKE_COMMAND}" ${command} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endforeach()
foreach(file bash-completion/completions/normscope zsh/site-functions/_normscope fish/vendor_completions.d/normscope.fish
    man/man1/normscope.1.gz)
  if(NOT EXISTS "${prefix}/share/${file}")
    message(FATAL_ERROR "share/${file} is not installed")
  endif()
endforeach()
execute_process(COMMAND "${build}/consumer" "${MODEL}" OUTPUT_VARIABLE printed COMMAND_ERROR_IS_FATAL ANY)
if(NOT printed MATCHES "^transformer.h.0.ln_1   condition 2.227\n")
  message(FATAL_ERROR "the consumer printed: ${printed}")
endif()
execute_process(COMMAND "${build}/consumer" "${MODEL}/none" RESULT_VARIABLE status ERROR_VARIABLE said)
if(NOT status EQUAL 1 OR NOT said MATCHES "none")
  message(FATAL_ERROR "the consumer, given no file, ended with ${status} and said: ${said}")
endif()
execute_process(COMMAND "${CMAKE_CTEST_COMMAND}" --test-dir "${examples}" --output-on-failure COMMAND_ERROR_IS_FATAL ANY)
