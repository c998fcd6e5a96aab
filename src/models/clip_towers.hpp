#pragma once

namespace normscope::models {

class Builder;

/// Which of two families with the same tensor names it is.
enum class ClipFamily { clip, siglip };

/// The vision tower of CLIP and SigLIP, whose tensors are under "vision_model.".
void clip_vision_tower(Builder& b, ClipFamily family);
/// The text tower, under "text_model.".
void clip_text_tower(Builder& b, ClipFamily family);
/// SigLIP by its model_type, without one by its tensors.
ClipFamily clip_family(const Builder& b);

}  // namespace normscope::models
