#include "taper/nn/registry.hpp"

#include "base/fail.hpp"
#include "catalogue.hpp"

namespace taper::nn {

namespace {

// One line for each file of layers. Explicit, because self-registration is dropped from a static library.
std::vector<LayerType> all_layers() {
  std::vector<LayerType> types;
  const auto add = [&](const std::vector<LayerType>& family) {
    types.insert(types.end(), family.begin(), family.end());
  };
  add(linear_layers());
  add(bilinear_layers());
  add(embedding_layers());
  add(conv_layers());
  add(conv_transpose_layers());
  add(pool_layers());
  add(max_pool_layers());
  add(max_unpool_layers());
  add(lp_pool_layers());
  add(batch_norm_layers());
  add(instance_norm_layers());
  add(layer_norm_layers());
  add(activation_layers());
  add(prelu_layers());
  add(dropout_layers());
  add(shape_layers());
  add(pad_layers());
  add(upsample_layers());
  add(join_layers());
  add(rnn_layers());
  add(rnn_cell_layers());
  add(attention_layers());
  return types;
}

std::vector<LayerType>& registry() {
  static std::vector<LayerType> types = all_layers();
  return types;
}

}  // namespace

LayerType::LayerType() = default;
LayerType::~LayerType() = default;
LayerType::LayerType(const LayerType&) = default;
LayerType::LayerType(LayerType&&) noexcept = default;
LayerType& LayerType::operator=(const LayerType&) = default;
LayerType& LayerType::operator=(LayerType&&) noexcept = default;

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
