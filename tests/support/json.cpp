#include "support/json.hpp"

template std::string nlohmann::json::dump(int, char, bool, error_handler_t) const;
template std::string nlohmann::ordered_json::dump(int, char, bool, error_handler_t) const;

namespace taper::test {

template <class Json>
Json parsed(const std::string& text) {
  return Json::parse(text);
}
template nlohmann::json parsed(const std::string&);
template nlohmann::ordered_json parsed(const std::string&);

}  // namespace taper::test
