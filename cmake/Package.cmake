# Packages of the command: `cpack -G DEB`, and `cpack -G TGZ` with NORMSCOPE_BUNDLE_LIBRARIES (scripts/package).
set(CPACK_PACKAGE_VENDOR "The Normscope maintainers")
set(CPACK_PACKAGE_CONTACT "The Normscope maintainers <maintainers@normscope.invalid>")
set(CPACK_PACKAGE_DESCRIPTION "\
Normscope analyses the normalization layers of a neural network's checkpoint:
which directions each norm removes and stretches, how uniform and how sharp
each attention head can be, and which tokens the model can never output.
It reports all of this as one HTML page and as JSON, proves its bounds, and
rewrites checkpoints exactly.")
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL command documents)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ${NORMSCOPE_BUNDLE_LIBRARIES})
set(CPACK_DEB_COMPONENT_INSTALL ON)

set(CPACK_PACKAGE_FILE_NAME "normscope-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS bash-completion)

# The files that Debian's policy requires of every package.
set(documents "${PROJECT_BINARY_DIR}/documents")
file(MAKE_DIRECTORY "${documents}")
file(WRITE "${documents}/copyright" "\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: normscope

Files: *
Copyright: 2026 The Normscope maintainers
License: Apache-2.0
 On Debian systems the text of the Apache License, version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
")
install(FILES "${documents}/copyright" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT documents EXCLUDE_FROM_ALL)
if(NORMSCOPE_BUNDLE_LIBRARIES)
  install(FILES LICENSE README.md CHANGELOG.md DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT documents EXCLUDE_FROM_ALL)
  # The C library is the system's; all other libraries are included.
  install(CODE "
    file(GET_RUNTIME_DEPENDENCIES EXECUTABLES \"$<TARGET_FILE:normscope_command>\"
      RESOLVED_DEPENDENCIES_VAR libraries
      PRE_EXCLUDE_REGEXES \"^ld-linux\" \"^lib(c|m|dl|rt|pthread)\\\\.so\")
    file(INSTALL \${libraries} FOLLOW_SYMLINK_CHAIN
      DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib/normscope\")
    execute_process(COMMAND \"${PROJECT_SOURCE_DIR}/scripts/licences\"
      \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DOCDIR}/licences\" \${libraries}
      COMMAND_ERROR_IS_FATAL ANY)"
    COMPONENT command)
else()
  file(STRINGS CHANGELOG.md latest REGEX "^## " LIMIT_COUNT 1)
  string(REGEX MATCH "[0-9]+-[0-9]+-[0-9]+$" day "${latest}")
  execute_process(COMMAND date --utc --rfc-email "--date=${day}" OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE)
  file(WRITE "${documents}/changelog" "\
normscope (${PROJECT_VERSION}) unstable; urgency=medium

  * CHANGELOG.md in the sources lists the changes.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
  execute_process(COMMAND gzip -9 -n -f "${documents}/changelog")
  install(FILES "${documents}/changelog.gz" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT documents EXCLUDE_FROM_ALL)
endif()
include(CPack)
