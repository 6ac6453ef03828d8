#include "cli/sequence_facts.hpp"

#include "base/checked.hpp"
#include "taper/nn/attention.hpp"
#include "taper/nn/rnn_cell.hpp"

namespace taper::cli {

namespace {

using Count = std::optional<std::int64_t>;

template <class Options>
const Options* options_as(const config::LayerSpec& layer) {
  return layer.type && layer.type->name == Options::kType ? static_cast<const Options*>(layer.options.get()) : nullptr;
}

/// How many rows an array has along its last dimension.
std::int64_t rows(const Shape& shape) { return shape.numel() / shape.back(); }

/// The rows times the weights that each of them meets.
template <class Options>
Count recurrent_products(const Options& o, std::int64_t gates, const Shape& input) {
  std::int64_t directions = 1, layers = 1, projection = 0;
  if constexpr (requires { o.proj_size; }) projection = o.proj_size;
  if constexpr (requires { o.num_layers; }) {
    directions = o.bidirectional ? 2 : 1;
    layers = o.num_layers;
  }
  const std::int64_t state = projection > 0 ? projection : o.hidden_size;
  const Count height = checked::mul(gates * directions, o.hidden_size), both = checked::mul(directions, state);
  const Count first = checked::mul(height, checked::add(state, input.back()));
  const Count above = checked::mul(layers - 1, checked::mul(height, checked::add(state, both)));
  const Count projections = checked::mul(layers * directions, checked::mul(projection, o.hidden_size));
  return checked::mul(rows(input), checked::add(checked::add(first, above), projections));
}

/// The projections of query, key and value and the last one, then query times key and weights times value.
Count attention_products(const nn::MultiheadAttentionOptions& o, std::span<const Shape> inputs) {
  const Shape& query = inputs[0];
  const Shape& key = inputs.size() > 1 ? inputs[1] : query;
  const Shape& value = inputs.size() > 2 ? inputs[2] : query;
  const std::int64_t embed = *o.embed_dim;
  const Count projections =
      checked::mul(embed, checked::add(checked::add(checked::mul(2, query.numel()), key.numel()), value.numel()));
  const int length = query.rank() == 3 && o.batch_first ? 1 : 0;
  const Count keys = checked::add(key[length], std::int64_t{o.add_bias_kv} + std::int64_t{o.add_zero_attn});
  return checked::add(projections, checked::mul(2, checked::mul(keys, query.numel())));
}

}  // namespace

bool reads_sequence(const config::LayerSpec& layer) {
  return layer.type && (layer.type->name.starts_with("RNN") || layer.type->name.starts_with("LSTM") ||
                        layer.type->name.starts_with("GRU") || layer.type->name == "MultiheadAttention");
}

std::optional<std::int64_t> sequence_products(const config::LayerSpec& layer, std::span<const Shape> inputs) {
  if (const auto* o = options_as<nn::RNNOptions>(layer)) return recurrent_products(*o, 1, inputs[0]);
  if (const auto* o = options_as<nn::LSTMOptions>(layer)) return recurrent_products(*o, 4, inputs[0]);
  if (const auto* o = options_as<nn::GRUOptions>(layer)) return recurrent_products(*o, 3, inputs[0]);
  if (const auto* o = options_as<nn::RNNCellOptions>(layer)) return recurrent_products(*o, 1, inputs[0]);
  if (const auto* o = options_as<nn::LSTMCellOptions>(layer)) return recurrent_products(*o, 4, inputs[0]);
  if (const auto* o = options_as<nn::GRUCellOptions>(layer)) return recurrent_products(*o, 3, inputs[0]);
  if (const auto* o = options_as<nn::MultiheadAttentionOptions>(layer)) return attention_products(*o, inputs);
  return 0;
}

}  // namespace taper::cli
