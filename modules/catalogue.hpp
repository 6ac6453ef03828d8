#pragma once

#include "taper/nn/registry.hpp"

// What each file of layers contributes to the registry.
namespace taper::nn {

std::vector<LayerType> linear_layers();
std::vector<LayerType> conv_layers();
std::vector<LayerType> conv_transpose_layers();
std::vector<LayerType> pool_layers();
std::vector<LayerType> lp_pool_layers();
std::vector<LayerType> max_pool_layers();
std::vector<LayerType> max_unpool_layers();
std::vector<LayerType> batch_norm_layers();
std::vector<LayerType> instance_norm_layers();
std::vector<LayerType> layer_norm_layers();
std::vector<LayerType> activation_layers();
std::vector<LayerType> dropout_layers();
std::vector<LayerType> embedding_layers();
std::vector<LayerType> prelu_layers();
std::vector<LayerType> bilinear_layers();
std::vector<LayerType> shape_layers();
std::vector<LayerType> pad_layers();
std::vector<LayerType> upsample_layers();
std::vector<LayerType> join_layers();
std::vector<LayerType> rnn_layers();
std::vector<LayerType> rnn_cell_layers();
std::vector<LayerType> attention_layers();

}  // namespace taper::nn
