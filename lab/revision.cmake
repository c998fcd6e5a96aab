# Writes OUTPUT, which defines the commit of SOURCE_DIR; an unchanged file is left as it is.
execute_process(COMMAND git -C "${SOURCE_DIR}" describe --always --dirty --abbrev=12 --exclude=*
  OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT [=[
#include "store/store.hpp"

namespace normscope::lab {

std::string_view source_revision() { return "@revision@"; }

}  // namespace normscope::lab
]=])
