#include "taper/nn/registry.hpp"

#include "base/fail.hpp"
#include "catalogue.hpp"

namespace taper::nn {

namespace {

// One line for each file of layers. Explicit, because self-registration is dropped from a static library.
std::vector<LayerType> all_layers() {
  std::vector<LayerType> types;
  for (const auto& family : {
           linear_layers(),     conv_layers(),    conv_transpose_layers(), pool_layers(),          max_pool_layers(),
           max_unpool_layers(), lp_pool_layers(), batch_norm_layers(),     instance_norm_layers(), layer_norm_layers(),
           activation_layers(), dropout_layers(), shape_layers(),          pad_layers(),           upsample_layers(),
           join_layers(),       rnn_layers(),     rnn_cell_layers(),       attention_layers(),
       })
    types.insert(types.end(), family.begin(), family.end());
  return types;
}

std::vector<LayerType>& registry() {
  static std::vector<LayerType> types = all_layers();
  return types;
}

}  // namespace

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
