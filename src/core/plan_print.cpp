#include <algorithm>

#include "base/fail.hpp"
#include "core/frozen_plan.hpp"
#include "taper/plan.hpp"

namespace taper {

namespace detail {

namespace {

std::string name_of(const PlanArray& array, const std::vector<std::pair<Tensor, Node*>>& externals) {
  switch (array.home) {
    case Home::block:
      return cat('@', array.offset);
    case Home::constant:
      return "constant";
    case Home::input:
      return cat("input ", array.number);
    case Home::output:
      return "result";
    case Home::gradient:
      return "gradient";
    case Home::external:
      break;
  }
  for (const auto& [tensor, node] : externals)
    if (tensor.impl()->buffer == array.buffer && node && node->extra && !node->extra->name.empty())
      return node->extra->name;
  return "outside";
}

}  // namespace

std::string FrozenPlan::to_string() const {
  std::vector<std::vector<std::string>> rows = {{"number", "kernel", "reads", "writes"}};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::string sides[2];
    for (const CommandText::Use& use : texts[i].uses) {
      std::string& side = sides[use.is_written];
      side += cat(side.empty() ? "" : ", ", name_of(arrays[use.array], externals), ' ', use.shape);
    }
    rows.push_back({cat('#', i), texts[i].name, sides[0], sides[1]});
  }
  std::size_t widths[4] = {};
  for (const auto& row : rows)
    for (std::size_t c = 0; c < 4; ++c) widths[c] = std::max(widths[c], row[c].size());
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < 4; ++c) line += row[c] + std::string(widths[c] - row[c].size() + 2, ' ');
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out + cat(bytes(), " bytes planned, at least ", lower_bound_bytes(), " needed, ", constant_bytes(),
                   " of constants\n");
}

}  // namespace detail

namespace autograd {

std::size_t Plan::size() const { return frozen_->size(); }
std::size_t Plan::bytes() const { return frozen_->bytes(); }
std::size_t Plan::lower_bound_bytes() const { return frozen_->lower_bound_bytes(); }
std::size_t Plan::constant_bytes() const { return frozen_->constant_bytes(); }
std::string Plan::to_string() const { return frozen_->to_string(); }

}  // namespace autograd
}  // namespace taper
