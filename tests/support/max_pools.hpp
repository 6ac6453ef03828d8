#pragma once

#include <string>

#include "support/golden_options.hpp"
#include "support/json.hpp"
#include "support/json_error.hpp"
#include "support/message_of.hpp"
#include "taper/creation.hpp"
#include "taper/nn/max_pool.hpp"

/// The max pools of one to three dimensions behind one name, so that tests run over all of them.
namespace taper::test {

namespace F = nn::functional;

inline Tensor pooled(const Tensor& x, const nn::MaxPool1dOptions& o) { return F::max_pool1d(x, o); }
inline Tensor pooled(const Tensor& x, const nn::MaxPool2dOptions& o) { return F::max_pool2d(x, o); }
inline Tensor pooled(const Tensor& x, const nn::MaxPool3dOptions& o) { return F::max_pool3d(x, o); }
inline Tensor pooled(const Tensor& x, const nn::AdaptiveMaxPool1dOptions& o) { return F::adaptive_max_pool1d(x, o); }
inline Tensor pooled(const Tensor& x, const nn::AdaptiveMaxPool2dOptions& o) { return F::adaptive_max_pool2d(x, o); }
inline Tensor pooled(const Tensor& x, const nn::AdaptiveMaxPool3dOptions& o) { return F::adaptive_max_pool3d(x, o); }

inline nn::MaxPooled pooled_both(const Tensor& x, const nn::MaxPool1dOptions& o) {
  return F::max_pool1d_with_indices(x, o);
}
inline nn::MaxPooled pooled_both(const Tensor& x, const nn::MaxPool2dOptions& o) {
  return F::max_pool2d_with_indices(x, o);
}
inline nn::MaxPooled pooled_both(const Tensor& x, const nn::MaxPool3dOptions& o) {
  return F::max_pool3d_with_indices(x, o);
}
inline nn::MaxPooled pooled_both(const Tensor& x, const nn::AdaptiveMaxPool1dOptions& o) {
  return F::adaptive_max_pool1d_with_indices(x, o);
}
inline nn::MaxPooled pooled_both(const Tensor& x, const nn::AdaptiveMaxPool2dOptions& o) {
  return F::adaptive_max_pool2d_with_indices(x, o);
}
inline nn::MaxPooled pooled_both(const Tensor& x, const nn::AdaptiveMaxPool3dOptions& o) {
  return F::adaptive_max_pool3d_with_indices(x, o);
}

/// Options from what stands between the braces of a JSON object: R"("kernel_size": 3)".
template <class O>
O options_of(const std::string& text) {
  const auto config = parsed("{" + text + "}");
  O options;
  ConfigReader reader(config);
  fields(options, reader);
  return options;
}

/// The sentences by which the function, the layer's constructor and a JSON config refuse options on an input of
/// `shape`.
struct Refusal {
  std::string function, constructor, json;
  bool operator==(const Refusal&) const = default;
};

template <class O>
Refusal refusal_of(const std::string& options, const Shape& shape) {
  const auto with_options = [&](const auto& use) {
    try {
      const O read = options_of<O>(options);
      return message_of([&] { use(read); });
    } catch (const std::runtime_error& e) {
      return std::string(e.what());  // no value of the field's type
    }
  };
  std::string sample = "[";
  for (int d = 1; d < shape.rank(); ++d) sample += (d > 1 ? ", " : "") + std::to_string(shape[d]);
  return {with_options([&](const O& o) { pooled(ones(shape), o); }),
          with_options([](const O& o) { nn::MaxPoolLayer<O>{o}; }), json_error(O::kType, options, sample + "]")};
}

/// For failing tests to show.
inline std::ostream& operator<<(std::ostream& out, const Refusal& r) {
  return out << "\n  function: " << r.function << "\n  constructor: " << r.constructor << "\n  JSON: " << r.json;
}

/// "max_pool1d" for the options of `MaxPool1d`.
template <class O>
std::string function_name() {
  const std::string type = O::kType;
  return (type[0] == 'A' ? "adaptive_max_pool" : "max_pool") + type.substr(type.size() - 2);
}

/// The refusal of a field whose number breaks its rule.
template <class O>
Refusal out_of_range(const std::string& key, const std::string& sentence, const std::string& dimension = "") {
  const std::string rule = sentence.substr(sentence.find("expected"));
  return {function_name<O>() + ": " + key + " " + sentence + dimension,
          std::string(O::kType) + ": " + key + " is out of range: " + rule,
          "error: /layers/0/" + key + " (layer " + O::kType + " 0): " + rule};
}

/// The refusal of options that no input makes valid.
template <class O>
Refusal invalid(const std::string& key, const std::string& sentence, const std::string& sample) {
  const std::string text = function_name<O>() + ": " + sentence;
  return {text, text,
          "error: /layers/0/" + key + " (layer " + O::kType + " 0): " + text + "; shapes: input " + sample + " -> " +
              O::kType};
}

/// The refusal of options that do not fit the input; `key` is the field that the config error points to, if any.
template <class O>
Refusal unfit(const std::string& key, const std::string& sentence, const std::string& sample) {
  Refusal r = invalid<O>(key, sentence, sample);
  if (key.empty()) r.json.replace(r.json.find("/0/ "), 4, "/0 ");
  r.constructor = "no error";
  return r;
}

}  // namespace taper::test
