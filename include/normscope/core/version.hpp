#pragma once

namespace normscope {

/// Version of the library and the command; CMakeLists.txt reads it from here.
inline constexpr const char* version = "0.1.0";

}  // namespace normscope
