#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "taper/fields.hpp"
#include "taper/tensor.hpp"

#pragma GCC visibility push(default)

namespace taper::nn {

/// Tensors under PyTorch's names, in registration order.
using StateDict = std::vector<NamedTensor>;

/// What `load_state_dict` found.
struct LoadReport {
  std::vector<std::string> missing;     ///< in the module, not in the state dict
  std::vector<std::string> unexpected;  ///< the other way round
  bool complete() const;
};

/// Which kind of elements a layer reads or gives; `any` gives what it reads.
enum class Elements { floating, int64, any };

/// What is known of a result before it is computed.
struct Outline {
  Shape shape;
  Elements elements;
  Outline(const Shape& s, Elements e = Elements::floating) : shape(s), elements(e) {}
};

/// A layer or a model: named parameters, buffers and children, and what they do to a tensor.
///
/// A module holds its parameters and members by address, so it is neither copied nor moved.
class Module {
 public:
  Module();
  virtual ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// The module's function. A module of several inputs overrides `forward_all` instead.
  virtual Tensor forward(const Tensor& x);
  /// By default `forward` of the only input.
  virtual Tensor forward_all(std::span<const Tensor> inputs);
  /// All results: the one of `forward_all`, then those that `further_outputs` names.
  virtual std::vector<Tensor> forward_outputs(std::span<const Tensor> inputs);
  /// Names of what the module gives beside its main result, "indices"; a `Graph` reads them as "pool1.indices".
  virtual std::vector<std::string> further_outputs() const;
  Tensor operator()(const Tensor& x) { return forward(x); }

  /// Training mode is on at first; it matters to layers such as Dropout. Reaches all children.
  void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const { return training_; }

  /// Own and children's, the latter with their path: "conv1.weight".
  std::vector<NamedTensor> named_parameters() const;
  std::vector<Tensor> parameters() const;
  std::vector<NamedTensor> named_buffers() const;
  std::vector<std::pair<std::string, Module*>> named_children() const;
  std::int64_t parameter_count() const;

  /// Parameters and buffers; the tensors share the module's data.
  StateDict state_dict() const;
  /// Copies values in by name, all or nothing: every name, shape and type is checked before anything is changed.
  /// `strict` refuses missing and unexpected names; otherwise they are only reported.
  /// Errors: `ErrorKind::config` (names), `ErrorKind::shape`, `ErrorKind::type`.
  LoadReport load_state_dict(const StateDict& state, bool strict = true);

  void zero_grad();
  /// Converts all parameters and buffers to another floating element type.
  void to(DType dtype);
  /// Freezes (thaws) all parameters.
  void requires_grad_(bool on);

  /// The class name, "Conv1d".
  virtual std::string type_name() const { return "Module"; }
  /// Calls `visitor` for each option; nothing for modules without options.
  virtual void visit_options(FieldVisitor& visitor) { (void)visitor; }
  /// PyTorch's printed form, with every option: "Sequential(\n  (0): Conv1d(in_channels=12, ...)\n)".
  std::string to_string() const;

 protected:
  struct Named {
    const char* name;
    Module& module;
  };
  /// Makes `parameter` a leaf that requires grad, known as `name`. The member must live as long as the module.
  void register_parameter(std::string_view name, Tensor& parameter);
  void register_buffer(std::string_view name, Tensor& buffer);
  void register_module(std::string_view name, Module& child);
  void register_modules(std::initializer_list<Named> children);

 private:
  /// Calls `visit(context, name, tensor)` for own and children's parameters or buffers.
  void each_tensor(const std::string& prefix, bool buffers,
                   void (*visit)(void* context, const std::string& name, const Tensor& tensor), void* context) const;

  std::vector<std::pair<std::string, Tensor*>> parameters_, buffers_;
  std::vector<std::pair<std::string, Module*>> children_;
  bool training_ = true;
};

/// A layer described by an options struct: `Options::kType` names it, `fields(Options&, FieldVisitor&)` describes it.
template <class O, class Base = Module>
class Layer : public Base {
 public:
  using Options = O;
  const Options& options() const { return options_; }
  std::string type_name() const override { return O::kType; }
  void visit_options(FieldVisitor& visitor) override { fields(options_, visitor); }

 protected:
  explicit Layer(O options) : options_(std::move(options)) { check_fields(O::kType, options_); }
  O options_;
};

/// `make<Conv1d>({.in_channels = 3, ...})`, for containers that own their layers.
template <class M>
Shared<M> make(typename M::Options options = {}) {
  return Shared<M>::make(std::move(options));
}

/// Applies its children one after another. Children are named "0", "1", ... unless given a name.
class Sequential : public Module {
 public:
  Sequential();
  Sequential(std::initializer_list<Shared<Module>> layers);

  void append(Shared<Module> layer);
  /// Errors: `ErrorKind::config` for a name taken or with a dot in it.
  void append(const std::string& name, Shared<Module> layer);

  Tensor forward(const Tensor& x) override;
  std::string type_name() const override { return "Sequential"; }
  std::size_t size() const { return layers_.size(); }
  Module& operator[](std::size_t i) { return *layers_[i]; }

 private:
  std::vector<Shared<Module>> layers_;
};

}  // namespace taper::nn

#pragma GCC visibility pop
