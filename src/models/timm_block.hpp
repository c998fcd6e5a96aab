#pragma once

namespace normscope::models {

class Builder;

/// The forward pass of one vision-transformer block, in timm's names.
void timm_block(Builder& b);

}  // namespace normscope::models
