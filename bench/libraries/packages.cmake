# Sets `packages` to the libraries that this task compares with, `missing` to those that are not installed, and what
# it compiles of other folders.
find_package(TBB QUIET)
find_package(simdjson QUIET)
find_package(Boost 1.74 QUIET)
find_package(GMP)
pkg_check_modules(HTTPLIB QUIET IMPORTED_TARGET cpp-httplib)
find_library(QD NAMES qd)  # its package file names a folder that Debian does not have
pkg_check_modules(CRYPTO QUIET IMPORTED_TARGET libcrypto)
set(missing)
foreach(package TBB simdjson Boost GMP HTTPLIB CRYPTO)
  if(NOT ${package}_FOUND)
    list(APPEND missing ${package})
  endif()
endforeach()
if(NOT QD)
  list(APPEND missing QD)
endif()
set(packages TBB::tbb simdjson::simdjson Boost::headers GMP::GMP PkgConfig::HTTPLIB ${QD} PkgConfig::CRYPTO
  normscope::nets)
set(server "${PROJECT_SOURCE_DIR}/explorer/server/cpp")
set(other_sources "${server}/request.cpp" "${server}/server.cpp" "${server}/site.cpp" "${server}/no_site.cpp")
set(other_folders "${server}" "${PROJECT_SOURCE_DIR}/src")
