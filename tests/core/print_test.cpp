#include <sstream>

#include "support/catch.hpp"
#include "support/golden.hpp"
#include "taper/autograd.hpp"
#include "taper/ops.hpp"

using namespace taper;

namespace {

Tensor stored_tensor(const nlohmann::json& stored) {
  const std::string dtype = stored.at("dtype").get<std::string>();
  if (dtype != "int64") {
    nlohmann::json floating = stored;
    floating.erase("dtype");
    return test::golden_tensor(floating, dtype == "float32" ? DType::float32 : DType::float64);
  }
  const auto extents = stored.at("shape").get<std::vector<std::int64_t>>();
  return from_data(stored.at("data").get<std::vector<std::int64_t>>(), Shape(std::span<const std::int64_t>(extents)));
}

}  // namespace

TEST_CASE("tensors are printed as PyTorch prints them") {
  const nlohmann::json golden = test::read_golden("printing.json");
  REQUIRE(golden.at("cases").size() > 40);
  for (const auto& stored : golden.at("cases")) {
    INFO(stored.at("name").get<std::string>());
    const Tensor x = stored_tensor(stored.at("tensor"));
    CHECK(x.to_string() == stored.at("text").get<std::string>());
    if (!stored.at("leaf").is_null()) CHECK(x.requires_grad_().to_string() == stored.at("leaf").get<std::string>());
  }
}

TEST_CASE("the printed form of a result names the operation that made it") {
  const Tensor x = tensor({1.5, -2.0}).requires_grad_();
  CHECK(relu(x).to_string() == "tensor([1.5000, 0.0000], grad_fn=<relu>)");
  CHECK(mul(to(x, DType::float64), 2).to_string() == "tensor([ 3., -4.], dtype=float64, grad_fn=<mul_scalar>)");
  const NoGradGuard no_grad;
  CHECK(relu(x).to_string() == "tensor([1.5000, 0.0000])");
}

TEST_CASE("a tensor is written to a stream in its printed form") {
  std::ostringstream out;
  out << tensor({{1, 2}, {3, 4}});
  CHECK(out.str() == "tensor([[1, 2],\n        [3, 4]])");
}
