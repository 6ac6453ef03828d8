#pragma once

#include "taper/nn/registry.hpp"

namespace taper::nn {

/// Adds the entry of a layer class to `types`; the arguments are those of `layer_type`.
void add_layer(std::vector<LayerType>& types, const LayerClass& layer, const char* summary, const char* example,
               std::initializer_list<Shape> example_inputs, std::size_t min_inputs = 1, std::size_t max_inputs = 1);

template <class M>
void add_layer(std::vector<LayerType>& types, const char* summary, const char* example,
               std::initializer_list<Shape> example_inputs, std::size_t min_inputs = 1, std::size_t max_inputs = 1) {
  add_layer(types, kLayerClass<M>, summary, example, example_inputs, min_inputs, max_inputs);
}

// What each file of layers contributes to the registry.
void add_linear_layers(std::vector<LayerType>& types);
void add_conv_layers(std::vector<LayerType>& types);
void add_conv_transpose_layers(std::vector<LayerType>& types);
void add_pool_layers(std::vector<LayerType>& types);
void add_lp_pool_layers(std::vector<LayerType>& types);
void add_max_pool_layers(std::vector<LayerType>& types);
void add_max_unpool_layers(std::vector<LayerType>& types);
void add_batch_norm_layers(std::vector<LayerType>& types);
void add_instance_norm_layers(std::vector<LayerType>& types);
void add_layer_norm_layers(std::vector<LayerType>& types);
void add_activation_layers(std::vector<LayerType>& types);
void add_dropout_layers(std::vector<LayerType>& types);
void add_embedding_layers(std::vector<LayerType>& types);
void add_prelu_layers(std::vector<LayerType>& types);
void add_bilinear_layers(std::vector<LayerType>& types);
void add_shape_layers(std::vector<LayerType>& types);
void add_pad_layers(std::vector<LayerType>& types);
void add_upsample_layers(std::vector<LayerType>& types);
void add_join_layers(std::vector<LayerType>& types);
void add_rnn_layers(std::vector<LayerType>& types);
void add_rnn_cell_layers(std::vector<LayerType>& types);
void add_attention_layers(std::vector<LayerType>& types);

}  // namespace taper::nn
