# normscope_build_flags: compile options of all our targets, which are not passed on to users of the library.
add_library(normscope_build_flags INTERFACE)
target_compile_options(normscope_build_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
  # An expression must round the same way on every machine; where fusion is wanted, std::fma is written.
  -ffp-contract=off
  # GCC 12 warns of overlaps in std::string that do not exist (GCC bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  # At -O3, GCC 12 takes the growth of a vector for an overflow, and Eigen's aligned memory for memory of others.
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-array-bounds>
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-stringop-overflow>
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-stringop-overread>
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-free-nonheap-object>)
if(NORMSCOPE_WARNINGS_AS_ERRORS)
  target_compile_options(normscope_build_flags INTERFACE -Werror)
endif()
if(NORMSCOPE_UNITY)
  # Files compiled together see each other's private names: a local name may hide one of another file, and GCC
  # mistakes a type in an anonymous namespace for a shared one.
  target_compile_options(normscope_build_flags INTERFACE
    -Wno-shadow
    $<$<CXX_COMPILER_ID:GNU>:-Wshadow=local>
    $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>
    # In kB: GCC looks for garbage from 128 MB on, which takes a fourteenth of its time for files of this size.
    "$<$<CXX_COMPILER_ID:GNU>:SHELL:--param ggc-min-heapsize=600000>")
endif()
if(NORMSCOPE_ASSERTIONS)
  target_compile_definitions(normscope_build_flags INTERFACE NORMSCOPE_ASSERTIONS _GLIBCXX_ASSERTIONS)
endif()

# Sanitizers change every object in the program, so they are set for the whole build.
if(NORMSCOPE_SANITIZE)
  add_compile_options(-fsanitize=${NORMSCOPE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${NORMSCOPE_SANITIZE})
  if(NORMSCOPE_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Clang's default. A program starts in an eighth less time, and the tests start thousands.
    add_link_options(-static-libasan -static-libubsan)
    # Nor are a million addresses of globals relocated at each start if programs have a fixed place.
    add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
  endif()
  if(NORMSCOPE_SANITIZE MATCHES "address.*undefined" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Checks at every access, call and pointer addition, and at the end of every local's scope: GCC takes more than twice
    # as long to compile with them, and minutes for a kernel, where thousands of calls are inlined. AddressSanitizer
    # stops at null pointers and outside of objects too.
    set(normscope_checks_of_parsers null,alignment,vptr,object-size,pointer-overflow,nonnull-attribute,returns-nonnull-attribute)
    add_compile_options(-fno-sanitize=${normscope_checks_of_parsers} -fno-sanitize-address-use-after-scope)
  endif()
endif()
if(NORMSCOPE_COVERAGE)
  # clang counts outcomes of conditions in the source; GCC counts jumps, to the handlers of exceptions among them.
  add_compile_options(-fprofile-instr-generate -fcoverage-mapping)
  add_link_options(-fprofile-instr-generate -fcoverage-mapping)
endif()

# Some fifty test programs are linked, each with most of the modules; mold takes a fraction of the time.
if(NORMSCOPE_BUILD_TESTS AND NOT EMSCRIPTEN)
  find_program(NORMSCOPE_MOLD mold)
  if(NORMSCOPE_MOLD)
    add_link_options(-fuse-ld=mold)
  endif()
endif()
