#pragma once

#include <cstddef>
#include <cstdint>

/// Two descriptions of an array that Python libraries hand one another in capsules.
namespace normscope::python {

/// What `__array_struct__` holds.
///
/// Source    [NumPy, The array interface protocol, version 3, C-struct access]
struct NumpyArray {
  static constexpr int native = 0x200;  ///< byte order
  static constexpr int writable = 0x400;

  int two;  ///< always 2
  int axes;
  char kind;  ///< 'f' for real numbers
  int entry;  ///< bytes
  int flags;
  std::ptrdiff_t* shape;
  std::ptrdiff_t* strides;  ///< in bytes
  void* data;
  void* description;
};

/// What a capsule named "dltensor" begins with.
///
/// Source    [DLPack, C API, DLManagedTensor]
struct DlpackTensor {
  static constexpr std::int32_t cpu = 1;
  static constexpr std::int32_t pinned = 3;
  static constexpr std::uint8_t real = 2;
  static constexpr std::uint8_t bfloat = 4;

  struct Type {
    std::uint8_t code;
    std::uint8_t bits;
    std::uint16_t lanes;
  };

  void* data;
  std::int32_t device_type;
  std::int32_t device;
  std::int32_t axes;
  Type type;
  std::ptrdiff_t* shape;    ///< of 64 bits, as on every machine that this is built for
  std::ptrdiff_t* strides;  ///< in elements; null where contiguous
  std::uint64_t offset;     ///< of the first entry, in bytes
};
static_assert(sizeof(std::ptrdiff_t) == 8);

/// What the capsule `__dlpack_c_exchange_api__` of a class of arrays holds: functions for its objects.
///
/// Source    [DLPack, C API, DLPackExchangeAPI, version 1.3]
struct DlpackExchange {
  static constexpr const char* name = "dlpack_exchange_api";
  static constexpr std::uint32_t known = 1;  ///< `major`

  std::uint32_t major;
  std::uint32_t minor;
  void* older;
  void* allocate;
  void* give;
  void* take;
  /// Describes an array as long as nobody changes it; 0, or −1 with an exception of Python.
  int (*describe)(void* object, DlpackTensor* to);
  void* stream;
};

}  // namespace normscope::python
