# With NORMSCOPE_SYSROOT, the folder of an older Debian, everything is linked with that system's C library, and so runs
# where the C library is as old: for wheels (scripts/release). The C++ runtime is linked in. fmt is compiled in, since
# Debian's library of it needs a newer C++ runtime.
target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY)
set(normscope_older_glibc "${PROJECT_SOURCE_DIR}/cmake/older_glibc.cpp")  # a source of programs and modules
# Of the folders nothing remains in the objects.
add_compile_options("-ffile-prefix-map=${PROJECT_SOURCE_DIR}=." "-ffile-prefix-map=${PROJECT_BINARY_DIR}=build")
# -B: before the machine's own C library.
add_link_options("--sysroot=${NORMSCOPE_SYSROOT}" "-B${NORMSCOPE_SYSROOT}/usr/lib/x86_64-linux-gnu/" -static-libstdc++
  -pthread -Wl,--as-needed)
# Functions that are newer than glibc 2.28, or have a newer version.
foreach(function exp exp2 log log2 pow getdents64 pthread_cond_clockwait arc4random)
  add_link_options(-Wl,--wrap=${function})
endforeach()
