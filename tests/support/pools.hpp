#pragma once

#include <string>
#include <vector>

#include "config/model_json.hpp"
#include "config/training_config.hpp"
#include "support/golden_options.hpp"
#include "support/message_of.hpp"
#include "taper/creation.hpp"
#include "taper/nn/max_pool.hpp"
#include "taper/nn/pool.hpp"
#include "taper/nn/registry.hpp"
#include "taper/ops.hpp"

/// All pools of a kind behind one face, their options as JSON, for faults that concern each of them.
namespace taper::test {

struct PoolKind {
  const char* type;  ///< the layer's
  const char* op;    ///< the function's
  int dims;
  bool average;
  Tensor (*call)(const Tensor& x, const void* options);

  const nn::LayerType& layer() const { return *nn::find_layer_type(type); }
  /// The function.
  Tensor operator()(const Tensor& x, const nlohmann::json& options) const {
    return call(x, options_from(layer(), options).get());
  }
  Tensor module(const Tensor& x, const nlohmann::json& options) const {
    return layer().make(options_from(layer(), options).get())->forward(x);
  }
  /// What a model of this layer alone is refused for; "" if it is not.
  std::string errors_in_json(const Shape& x, const nlohmann::json& options) const {
    config::Json layer_json = {{"type", type}};
    layer_json.update(config::Json(options));
    const std::vector<std::int64_t> shape(x.begin() + 1, x.end());
    const config::Json model = {{"input", {{"shape", shape}}}, {"layers", config::Json::array({layer_json})}};
    return config::parse_model(model.dump(), "m.json").errors;
  }

  /// The sentence, without the function's name, by which the function, the layer and JSON refuse the options or the
  /// input; "no error" if none does, and what each says when they disagree.
  std::string refusal(const Shape& x, const nlohmann::json& options) const {
    const Tensor input = ones(x);
    const std::string sentence = message_of([&] { (*this)(input, options); });
    const std::string of_module = message_of([&] { module(input, options); });
    const bool in_json = !errors_in_json(x, options).empty();
    // The layer checks each option's own rule first: "AvgPool1d: stride is out of range: expected >= 1, got 0".
    const auto expected = [](const std::string& text) {
      const std::size_t at = text.find(": expected ");
      return at == std::string::npos ? text : text.substr(at, text.find(", got ", at) - at);
    };
    const bool by_rule = of_module.rfind(std::string(type) + ": ", 0) == 0;
    if (by_rule ? expected(of_module) != expected(sentence) : of_module != sentence)
      return sentence + " | the layer: " + of_module;
    if (in_json != (sentence != "no error")) return sentence + " | JSON otherwise";
    const std::string prefix = std::string(op) + ": ";
    return sentence.rfind(prefix, 0) == 0 ? sentence.substr(prefix.size()) : sentence;
  }
};

template <class O, Tensor (*function)(const Tensor&, const O&)>
Tensor call_pool(const Tensor& x, const void* options) {
  return function(x, *static_cast<const O*>(options));
}

namespace pools {
using namespace nn;
using namespace nn::functional;

inline const PoolKind kSliding[] = {
    {"AvgPool1d", "avg_pool1d", 1, true, call_pool<AvgPool1dOptions, avg_pool1d>},
    {"AvgPool2d", "avg_pool2d", 2, true, call_pool<AvgPool2dOptions, avg_pool2d>},
    {"AvgPool3d", "avg_pool3d", 3, true, call_pool<AvgPool3dOptions, avg_pool3d>},
    {"MaxPool1d", "max_pool1d", 1, false, call_pool<MaxPool1dOptions, max_pool1d>},
    {"MaxPool2d", "max_pool2d", 2, false, call_pool<MaxPool2dOptions, max_pool2d>},
    {"MaxPool3d", "max_pool3d", 3, false, call_pool<MaxPool3dOptions, max_pool3d>},
};
inline const PoolKind kAdaptive[] = {
    {"AdaptiveAvgPool1d", "adaptive_avg_pool1d", 1, true, call_pool<AdaptiveAvgPool1dOptions, adaptive_avg_pool1d>},
    {"AdaptiveAvgPool2d", "adaptive_avg_pool2d", 2, true, call_pool<AdaptiveAvgPool2dOptions, adaptive_avg_pool2d>},
    {"AdaptiveAvgPool3d", "adaptive_avg_pool3d", 3, true, call_pool<AdaptiveAvgPool3dOptions, adaptive_avg_pool3d>},
    {"AdaptiveMaxPool1d", "adaptive_max_pool1d", 1, false, call_pool<AdaptiveMaxPool1dOptions, adaptive_max_pool1d>},
    {"AdaptiveMaxPool2d", "adaptive_max_pool2d", 2, false, call_pool<AdaptiveMaxPool2dOptions, adaptive_max_pool2d>},
    {"AdaptiveMaxPool3d", "adaptive_max_pool3d", 3, false, call_pool<AdaptiveMaxPool3dOptions, adaptive_max_pool3d>},
};
}  // namespace pools

/// [first..., extents of the last `dims` of 11, 7, 5].
inline Shape with_extents(const Shape& first, int dims) { return first.concat(Shape{11, 7, 5}.slice(3 - dims, 3)); }
/// [first..., extent, extent, ...].
inline Shape with_extents(const Shape& first, int dims, std::int64_t extent) {
  return first.concat(Shape{extent, extent, extent}.slice(0, dims));
}

}  // namespace taper::test
