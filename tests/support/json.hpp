#pragma once

#include <nlohmann/json.hpp>
#include <string>

// What writes JSON is compiled once, in json.cpp, as it takes the compiler seconds.
extern template std::string nlohmann::json::dump(int, char, bool, error_handler_t) const;
extern template std::string nlohmann::ordered_json::dump(int, char, bool, error_handler_t) const;

namespace taper::test {

/// What the text says; with `Json` = `nlohmann::ordered_json` the keys of objects keep their order.
template <class Json = nlohmann::json>
Json parsed(const std::string& text);

}  // namespace taper::test
