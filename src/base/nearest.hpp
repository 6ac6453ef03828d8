#pragma once

#include <span>
#include <string>
#include <string_view>

namespace taper {

/// The one of `names` that a person who typed `given` most likely meant, or "" when none is near.
///
/// Letter case and the separators `_ - .` and blank do not count. Near is: the same words in another order
/// (`size_kernel`), a Damerau-Levenshtein distance of at most a third of the longer name (at least 1, and less than
/// the shorter one's length), a shared beginning of three letters or more that is the whole of one of them (`kernel`,
/// `bias_term`), a whole word of the name (`features`). The nearest wins, among equals the first.
std::string nearest(std::string_view given, std::span<const std::string_view> names);

/// "; did you mean kernel_size?", or "" when nothing is near: the hint at the end of a message.
std::string did_you_mean(std::string_view given, std::span<const std::string_view> names);

}  // namespace taper
