#include <algorithm>

#include "base/fail.hpp"
#include "core/walk.hpp"

namespace taper::autograd {

using detail::Node;
using detail::NodeOperand;

namespace {

Tape::Entry describe(Node& node) {
  Tape::Entry entry;
  entry.number = node.position;
  entry.op = node.op->name;
  entry.derivative = node.op->derivative;
  entry.shape = node.shape();
  entry.dtype = node.dtype;
  entry.released = node.released;
  if (node.extra) {
    entry.name = node.extra->name;
    entry.gradient = node.extra->gradient;
  }
  detail::OperandShapes shapes(node);
  std::size_t index = 0;
  for (const NodeOperand& operand : node.operands()) {
    const Shape shape(shapes.next(operand).extents, operand.rank);
    const bool is_input = index < node.n_inputs;
    if (is_input) {
      entry.inputs.push_back(operand.producer ? operand.producer->position : 0);
      entry.input_shapes.push_back(shape);
    }
    if (operand.saved)
      entry.saved.push_back(is_input ? cat("input ", index, " ", shape)
                                     : cat("aux ", index - node.n_inputs, " ", shape));
    ++index;
  }
  if (node.output() && node.output()->saved) entry.saved.push_back(cat("output ", node.shape()));
  return entry;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

std::string inputs_column(const Tape::Entry& entry) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < entry.inputs.size(); ++i)
    words.push_back(entry.inputs[i] ? cat('#', entry.inputs[i]) : cat("constant ", entry.input_shapes[i]));
  return joined(words);
}

std::string gradient_column(const Tensor& gradient) {
  if (!gradient.defined()) return "-";
  constexpr std::int64_t kShown = 4;
  const std::vector<double> values = gradient.to_vector<double>();
  std::string out;
  for (std::size_t i = 0; i < values.size() && i < std::size_t(kShown); ++i)
    out += (i ? " " : "") + cat(gradient.dtype() == DType::float32 ? double(float(values[i])) : values[i]);
  return std::int64_t(values.size()) > kShown ? out + " ..." : out;
}

}  // namespace

Tape Tape::of(const Tensor& tensor) {
  if (!tensor.requires_grad())
    fail(ErrorKind::tape,
         "Tape: the tensor does not require grad: expected a recorded result, got a tensor without a graph");
  Node* const root[] = {tensor.impl()->node};
  const detail::Walk walk(root, true);
  const auto nodes = walk.latest_first();
  Tape tape;
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) tape.entries_.push_back(describe(**it));
  return tape;
}

std::string Tape::to_string() const {
  std::vector<std::vector<std::string>> rows = {{"number", "op", "shape", "inputs", "saved", "gradient"}};
  for (const Entry& entry : entries_)
    rows.push_back({cat('#', entry.number), entry.name.empty() ? entry.op : entry.op + " " + entry.name,
                    taper::to_string(entry.shape), inputs_column(entry),
                    entry.released ? "(freed)" : joined(entry.saved), gradient_column(entry.gradient)});
  std::vector<std::size_t> widths(rows[0].size());
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) line += row[c] + std::string(widths[c] - row[c].size() + 2, ' ');
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

}  // namespace taper::autograd
