#include "taper/nn/module.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "core/capture.hpp"
#include "taper/autograd.hpp"
#include "taper/ops.hpp"

namespace taper::nn {

bool LoadReport::complete() const { return missing.empty() && unexpected.empty(); }

Module::Module() = default;
Module::~Module() = default;

Tensor Module::forward(const Tensor&) {
  fail(ErrorKind::config, type_name(),
       ": no forward for one input: expected forward or forward_all to be overridden, got neither");
}

Tensor Module::forward_all(std::span<const Tensor> inputs) {
  if (inputs.size() != 1) fail(ErrorKind::config, type_name(), ": takes one input: expected 1, got ", inputs.size());
  return forward(inputs[0]);
}

std::vector<Tensor> Module::forward_outputs(std::span<const Tensor> inputs) { return {forward_all(inputs)}; }

std::vector<std::string> Module::further_outputs() const { return {}; }

void Module::train(bool on) {
  if (training_ != on) detail::mode_changed(this);
  training_ = on;
  for (const auto& [name, child] : children_) child->train(on);
}

void Module::each_tensor(const std::string& prefix, bool buffers,
                         void (*visit)(void* context, const std::string& name, const Tensor& tensor),
                         void* context) const {
  for (const auto& [name, tensor] : buffers ? buffers_ : parameters_)
    if (tensor->defined()) visit(context, prefix + name, *tensor);
  for (const auto& [name, child] : children_) child->each_tensor(prefix + name + ".", buffers, visit, context);
}

namespace {

void append_named(void* list, const std::string& name, const Tensor& tensor) {
  static_cast<std::vector<NamedTensor>*>(list)->push_back({name, tensor});
}

}  // namespace

std::vector<NamedTensor> Module::named_parameters() const {
  std::vector<NamedTensor> out;
  each_tensor("", false, append_named, &out);
  return out;
}

std::vector<NamedTensor> Module::named_buffers() const {
  std::vector<NamedTensor> out;
  each_tensor("", true, append_named, &out);
  return out;
}

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> out;
  const auto append = [](void* list, const std::string&, const Tensor& tensor) {
    static_cast<std::vector<Tensor>*>(list)->push_back(tensor);
  };
  each_tensor("", false, append, &out);
  return out;
}

std::vector<std::pair<std::string, Module*>> Module::named_children() const { return children_; }

std::int64_t Module::parameter_count() const {
  std::int64_t count = 0;
  const auto add = [](void* sum, const std::string&, const Tensor& tensor) {
    *static_cast<std::int64_t*>(sum) += tensor.numel();
  };
  each_tensor("", false, add, &count);
  return count;
}

StateDict Module::state_dict() const {
  StateDict state;
  each_tensor("", false, append_named, &state);
  each_tensor("", true, append_named, &state);
  for (NamedTensor& entry : state) entry.tensor = entry.tensor.detach();
  return state;
}

namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const auto& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

const Tensor* find(const StateDict& state, const std::string& name) {
  const auto it = std::find_if(state.begin(), state.end(), [&](const NamedTensor& t) { return t.name == name; });
  return it == state.end() ? nullptr : &it->tensor;
}

}  // namespace

LoadReport Module::load_state_dict(const StateDict& state, bool strict) {
  const StateDict own = state_dict();
  LoadReport report;
  std::vector<std::pair<Tensor, Tensor>> copies;
  for (const auto& [name, target] : own) {
    const Tensor* source = find(state, name);
    if (!source) {
      // Old files of norms have none; there PyTorch too keeps the module's own.
      if (!name.ends_with("num_batches_tracked")) report.missing.push_back(name);
      continue;
    }
    if (!(source->shape() == target.shape()))
      fail(ErrorKind::shape, "load_state_dict: ", name, " has another shape: expected ", target.shape(), ", got ",
           source->shape());
    if (is_floating(source->dtype()) != is_floating(target.dtype()))
      fail(ErrorKind::type, "load_state_dict: ", name, " has another element type: expected ", target.dtype(), ", got ",
           source->dtype());
    copies.emplace_back(target, *source);
  }
  for (const auto& [name, tensor] : state)
    if (!find(own, name)) report.unexpected.push_back(name);
  if (strict && !report.missing.empty())
    fail(ErrorKind::config, "load_state_dict: parameters are missing: expected ", joined(report.missing),
         ", got none of them");
  if (strict && !report.unexpected.empty())
    fail(ErrorKind::config, "load_state_dict: unexpected parameters: expected only the module's own, got ",
         joined(report.unexpected));
  const NoGradGuard no_grad;
  for (const auto& [target, source] : copies) target.copy_(source);
  return report;
}

void Module::zero_grad() {
  const auto zero = [](void*, const std::string&, const Tensor& tensor) { tensor.zero_grad(); };
  each_tensor("", false, zero, nullptr);
}

void Module::to(DType dtype) {
  if (!is_floating(dtype))
    fail(ErrorKind::type, type_name(), ": parameters must be floating: expected float32 or float64, got ", dtype);
  detail::module_changed();
  for (auto& [name, tensor] : parameters_)
    if (tensor->defined()) *tensor = tensor->detach().to(dtype).requires_grad_(tensor->requires_grad());
  for (auto& [name, tensor] : buffers_)
    if (tensor->defined() && is_floating(tensor->dtype())) *tensor = tensor->to(dtype);
  for (const auto& [name, child] : children_) child->to(dtype);
}

void Module::requires_grad_(bool on) {
  const auto set = [](void* value, const std::string&, const Tensor& tensor) {
    tensor.requires_grad_(*static_cast<const bool*>(value));
  };
  each_tensor("", false, set, &on);
}

namespace {

std::string indented(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c;
    if (c == '\n') out += "  ";
  }
  return out;
}

}  // namespace

std::string Module::to_string() const {
  detail::FieldPrinter printer;
  const_cast<Module*>(this)->visit_options(printer);  // the printer only reads
  std::string inside = printer.text;
  for (const auto& [name, child] : children_) inside += "\n  (" + name + "): " + indented(child->to_string());
  return type_name() + "(" + inside + (children_.empty() ? ")" : "\n)");
}

void Module::register_parameter(std::string_view name, Tensor& parameter) {
  detail::module_changed();
  if (parameter.defined()) parameter.requires_grad_().set_name(std::string(name));
  parameters_.emplace_back(name, &parameter);
}

void Module::register_buffer(std::string_view name, Tensor& buffer) { buffers_.emplace_back(name, &buffer); }

void Module::register_module(std::string_view name, Module& child) {
  const bool taken = std::any_of(children_.begin(), children_.end(), [&](const auto& c) { return c.first == name; });
  if (name.empty() || taken || name.find('.') != std::string::npos)
    fail(ErrorKind::config, type_name(),
         ": a child's name must be new and without a dot: expected another name, got \"", name, '"');
  children_.emplace_back(name, &child);
  detail::module_changed();
}

void Module::register_modules(std::initializer_list<Named> children) {
  for (const Named& child : children) register_module(child.name, child.module);
}

Sequential::Sequential() = default;

Sequential::Sequential(std::initializer_list<Shared<Module>> layers) {
  for (const auto& layer : layers) append(layer);
}

void Sequential::append(Shared<Module> layer) { append(cat(layers_.size()), std::move(layer)); }

void Sequential::append(const std::string& name, Shared<Module> layer) {
  register_module(name, *layer);
  layers_.push_back(std::move(layer));
}

Tensor Sequential::forward(const Tensor& x) {
  Tensor y = x;
  for (const auto& layer : layers_) y = layer->forward(y);
  return y;
}

}  // namespace taper::nn
