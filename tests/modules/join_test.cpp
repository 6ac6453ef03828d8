#include "taper/nn/join.hpp"

#include "support/catch.hpp"
#include "taper/creation.hpp"
#include "taper/nn/registry.hpp"
#include "taper/ops.hpp"

using namespace taper;

namespace {

template <class L>
std::vector<float> joined(L&& layer, std::vector<Tensor> inputs) {
  return layer.forward_all(inputs).template to_vector<float>();
}

Shape infer_join(const char* type, const std::vector<Shape>& inputs) {
  const nn::LayerType* entry = nn::find_layer_type(type);
  return entry->infer(entry->new_options().get(), inputs);
}

}  // namespace

TEST_CASE("joins combine two and more inputs") {
  const Tensor a = tensor({{1, 2, 3}}, DType::float32), b = tensor({{10, 20, 30}}, DType::float32);
  CHECK(joined(nn::Add(), {a, b, a}) == std::vector<float>{12, 24, 36});
  CHECK(joined(nn::Multiply(), {a, b, a}) == std::vector<float>{10, 80, 270});
  CHECK(joined(nn::Concat(), {a, b, a}) == std::vector<float>{1, 2, 3, 10, 20, 30, 1, 2, 3});
  nn::Concat rows({.dim = 0});
  CHECK(rows.forward_all(std::vector<Tensor>{a, b}).shape() == Shape{2, 3});
}

TEST_CASE("Add and Multiply repeat extents of 1") {
  const Tensor gate = tensor({{{2}, {3}}}, DType::float32), x = ones({1, 2, 5});
  CHECK(joined(nn::Multiply(), {x, gate}) == std::vector<float>{2, 2, 2, 2, 2, 3, 3, 3, 3, 3});
  CHECK(infer_join("Multiply", {{1, 2, 5}, {1, 2, 1}}) == Shape{1, 2, 5});
  CHECK(infer_join("Add", {{1, 1, 5}, {1, 2, 1}}) == Shape{1, 2, 5});
  CHECK(infer_join("Concat", {{1, 2, 5}, {1, 7, 5}, {1, 3, 5}}) == Shape{1, 12, 5});
}

TEST_CASE("joins name inputs that do not fit") {
  const Tensor x = ones({2, 3, 5});
  CHECK_THROWS_WITH(nn::Add()(x), "Add: takes several inputs: expected >= 2, got 1");
  CHECK_THROWS_WITH(joined(nn::Concat(), {}), "Concat: takes several inputs: expected >= 2, got 0");
  CHECK_THROWS_WITH(joined(nn::Add(), {x, x, ones({3, 5})}),
                    "Add: inputs differ in the number of dimensions: expected 3-D, got 2-D in input 2");
  CHECK_THROWS_WITH(
      joined(nn::Multiply(), {x, ones({2, 3, 7})}),
      "mul: shapes do not broadcast: expected equal extents or 1 counted from the back, got [2, 3, 5] and "
      "[2, 3, 7]");
  CHECK_THROWS_WITH(joined(nn::Concat(), {x, ones({2, 3, 7})}),
                    "cat: shapes differ outside the joined dimension: expected [2, *, 5], got [2, 3, 7] in part 1");
  CHECK_THROWS_WITH(infer_join("Add", {{1, 3}}), "Add: takes several inputs: expected >= 2, got 1");
  CHECK_THROWS_WITH(infer_join("Add", {{1, 3, 5}, {1, 5}}),
                    "Add: inputs differ in the number of dimensions: expected 3-D, got 2-D in input 1");
  CHECK_THROWS_WITH(infer_join("Add", {{1, 3, 5}, {1, 3, 5}, {1, 2, 5}}),
                    "Add: inputs do not fit: expected equal extents or 1, got [N, 3, 5] and [N, 2, 5] in input 2");
  CHECK_THROWS_WITH(infer_join("Concat", {{1, 3, 5}, {1, 2, 7}}),
                    "Concat: inputs differ outside dimension 1: expected as in [N, 3, 5], got [N, 2, 7] in input 1");
  CHECK_THROWS_WITH(infer_join("Concat", {{1}, {1}}), "Concat: dimension out of range: expected -1 to 0, got 1");
}
