/* Preloaded: pieces of zeros become holes of a file in place of blocks on the disk, so that a model larger than the disk
   can be written. What the command computes, and the bytes that its output has, are the same. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

ssize_t write(int file, const void* buffer, size_t size) {
  static ssize_t (*real)(int, const void*, size_t);
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "write");
  struct stat status;
  const char* bytes = buffer;
  if (size >= 4096 && bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
    const off_t end = lseek(file, (off_t)size, SEEK_CUR);
    return end >= 0 && ftruncate(file, end) == 0 ? (ssize_t)size : -1;
  }
  return real(file, buffer, size);
}
