#include <set>

#include "core/memory.hpp"
#include "support/catch.hpp"
#include "support/golden.hpp"
#include "support/golden_options.hpp"
#include "taper/creation.hpp"
#include "taper/optim.hpp"

using namespace taper;
using namespace taper::optim;

namespace {

Tensor row(const nlohmann::json& stored) {
  const auto values = stored.get<std::vector<double>>();
  return from_data(values, {std::int64_t(values.size())});
}

}  // namespace

TEST_CASE("ten steps of every optimiser give PyTorch's values", "[optim]") {
  std::set<std::string> seen, offered;
  const auto golden = test::read_golden("optimizers.json");
  for (const auto& stored : golden.at("cases")) {
    CAPTURE(stored.at("name").get<std::string>());
    const std::string name = stored.at("optimizer").at("type");
    const OptimizerType* type = find_optimizer_type(name);
    REQUIRE(type != nullptr);
    seen.insert(name);
    const Tensor p = row(stored.at("initial")).requires_grad_();
    const auto optimizer = type->make(test::options_from(*type, stored.at("optimizer")).get(), {{"p", p}});
    for (std::size_t i = 0; i < stored.at("gradients").size(); ++i) {
      p.set_grad(row(stored.at("gradients")[i]));
      optimizer->step();
      CHECK(test::golden_difference(p, row(stored.at("values")[i]), {1e-13, 1e-3}) == "");
    }
  }
  for (const OptimizerType& type : optimizer_types()) offered.insert(type.name);
  CHECK(seen == offered);
}
