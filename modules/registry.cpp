#include "taper/nn/registry.hpp"

#include "base/fail.hpp"
#include "catalogue.hpp"

namespace taper::nn {

namespace {

// One line for each file of layers. Explicit, because self-registration is dropped from a static library.
std::vector<LayerType> all_layers() {
  std::vector<LayerType> types;
  add_linear_layers(types);
  add_bilinear_layers(types);
  add_embedding_layers(types);
  add_conv_layers(types);
  add_conv_transpose_layers(types);
  add_pool_layers(types);
  add_max_pool_layers(types);
  add_max_unpool_layers(types);
  add_lp_pool_layers(types);
  add_batch_norm_layers(types);
  add_instance_norm_layers(types);
  add_layer_norm_layers(types);
  add_activation_layers(types);
  add_prelu_layers(types);
  add_dropout_layers(types);
  add_shape_layers(types);
  add_pad_layers(types);
  add_upsample_layers(types);
  add_join_layers(types);
  add_rnn_layers(types);
  add_rnn_cell_layers(types);
  add_attention_layers(types);
  return types;
}

std::vector<LayerType>& registry() {
  static std::vector<LayerType> types = all_layers();
  return types;
}

}  // namespace

LayerType::LayerType() : reads{Elements::floating} {}
LayerType::~LayerType() = default;
LayerType::LayerType(const LayerType&) = default;
LayerType::LayerType(LayerType&&) noexcept = default;
LayerType& LayerType::operator=(const LayerType&) = default;
LayerType& LayerType::operator=(LayerType&&) noexcept = default;

LayerType layer_type(const LayerClass& layer, std::string_view summary, std::string_view example,
                     std::span<const Shape> example_inputs, std::size_t min_inputs, std::size_t max_inputs) {
  LayerType type;
  static_cast<LayerCalls&>(type) = layer.calls;
  type.name = layer.name;
  type.summary = summary;
  type.example = example;
  type.example_inputs.assign(example_inputs.begin(), example_inputs.end());
  type.min_inputs = min_inputs;
  type.max_inputs = max_inputs;
  if (!layer.reads.empty()) type.reads.assign(layer.reads.begin(), layer.reads.end());
  type.example_indices = layer.example_indices;
  return type;
}

void add_layer(std::vector<LayerType>& types, const LayerClass& layer, const char* summary, const char* example,
               std::initializer_list<Shape> example_inputs, std::size_t min_inputs, std::size_t max_inputs) {
  types.push_back(
      layer_type(layer, summary, example, {example_inputs.begin(), example_inputs.size()}, min_inputs, max_inputs));
}

const std::vector<LayerType>& layer_types() { return registry(); }

const LayerType* find_layer_type(const std::string& name) {
  for (const LayerType& type : registry())
    if (type.name == name) return &type;
  return nullptr;
}

void register_layer(LayerType type) {
  if (find_layer_type(type.name))
    fail(ErrorKind::config, "register_layer: the name is taken: expected a new one, got ", type.name);
  registry().push_back(std::move(type));
}

}  // namespace taper::nn
