#pragma once

namespace normscope::model {

class Builder;

/// The forward pass of one vision-transformer block, in timm's names.
void timm_block(Builder& b);

}  // namespace normscope::model
