# Installs the modules' headers and libraries as the CMake package `normscope`, and the command.
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/normscope")
install(EXPORT normscopeTargets NAMESPACE normscope:: DESTINATION "${package_dir}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/normscopeConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/normscopeConfig.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/normscopeConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/normscopeConfig.cmake" "${PROJECT_BINARY_DIR}/normscopeConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/FindGMP.cmake"
  DESTINATION "${package_dir}")
