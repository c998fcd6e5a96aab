# Elements of files are used as they lie in memory, and formats of models are little-endian: a processor of the other byte
# order is refused before anything is compiled.
if(CMAKE_CXX_BYTE_ORDER STREQUAL "BIG_ENDIAN")
  message(FATAL_ERROR "normscope: expected a little-endian processor, not a big-endian one")
endif()
