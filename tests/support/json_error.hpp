#pragma once

#include <string>

#include "config/training_config.hpp"

namespace taper::test {

/// What is wrong with one layer read from JSON, for samples of `shape`: "error: /layers/0...", one line; "no error"
/// if nothing. `options` are the layer's keys without the type: R"("kernel_size": 3)".
inline std::string json_error(const std::string& type, const std::string& options, const std::string& shape) {
  const std::string layer = R"({"type": ")" + type + "\"" + (options.empty() ? "" : ", ") + options + "}";
  const std::string errors =
      config::parse_model(R"({"input": {"shape": )" + shape + R"(}, "layers": [)" + layer + "]}", "m.json").errors;
  const std::size_t from = errors.find("error: ");
  return from == std::string::npos ? "no error" : errors.substr(from, errors.find('\n', from) - from);
}

}  // namespace taper::test
