#pragma once

#include <nlohmann/json.hpp>

#include <normscope/json/vega.hpp>

/// What the figures share.
namespace normscope::lnnet::detail {

using Json = nlohmann::ordered_json;

using vega::quantity;
using vega::shortened;
using vega::specification;
using vega::values;

}  // namespace normscope::lnnet::detail
