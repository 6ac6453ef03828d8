#include <memory>

#include "peer.hpp"
#include "tiny_dnn/tiny_dnn.h"

using namespace bench;
namespace tiny = tiny_dnn;

namespace {

using Size = tiny::serial_size_t;

/// A sample a row, with the frameworks' numbers.
tiny::tensor_t rows(std::size_t n, std::size_t each, std::uint32_t seed) {
  std::vector<float> all(n * each);
  fill(all.data(), all.size(), seed);
  tiny::tensor_t out;
  for (std::size_t i = 0; i < n; ++i)
    out.emplace_back(all.begin() + long(i * each), all.begin() + long((i + 1) * each));
  return out;
}

/// The forward of one layer; its inputs stay where the first one brought them.
template <class Layer>
Work forward(const std::shared_ptr<Layer>& layer, const tiny::tensor_t& x) {
  layer->forward({x});
  return {[=] { layer->forward(); },
          [=](Values& values) {
            std::vector<float> all;
            const tiny::tensor_t y = layer->output()[0];
            for (const auto& row : y) all.insert(all.end(), row.begin(), row.end());
            values.add(all.data(), all.size());
          }};
}

Work conv(const Task& t, Size h, Size w) {
  const Size c = Size(t["c"]), f = Size(t["f"]), k = Size(t["k"]), kh = h == 1 ? 1 : k;
  if (!t.is("pass", "forward") || t.get("s", 1) != 1 || t.get("groups", 1) != 1 || t["p"] != t["k"] / 2) return {};
  const auto layer =
      std::make_shared<tiny::convolutional_layer<tiny::activation::identity>>(w, h, k, kh, c, f, tiny::padding::same);
  layer->setup(true);
  const double bound = weight_bound(std::int64_t(c) * kh * k);
  fill(layer->weights()[0]->data(), layer->weights()[0]->size(), 2, -bound, bound);
  fill(layer->weights()[1]->data(), layer->weights()[1]->size(), 3, -0.1, 0.1);
  return forward(layer, rows(std::size_t(t["n"]), c * h * w, 1));
}

Work avg_pool(const Task& t, Size h, Size w) {
  const Size k = Size(t["k"]), kh = h == 1 ? 1 : k, c = Size(t["c"]);
  if (!t.is("pass", "forward") || t.get("s", k) != std::int64_t(k) || t.get("p", 0) != 0) return {};
  const auto layer = std::make_shared<tiny::average_pooling_layer<tiny::activation::identity>>(w, h, c, k, kh, k, kh);
  layer->setup(true);
  layer->weights()[0]->assign(c, 1.0f);  // theirs are trained
  layer->weights()[1]->assign(c, 0.0f);
  return forward(layer, rows(std::size_t(t["n"]), c * h * w, 1));
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, Maker> makers = {
      {"conv1d", [](const Task& t) { return conv(t, 1, Size(t["l"])); }},
      {"conv2d", [](const Task& t) { return conv(t, Size(t["h"]), Size(t["h"])); }},
      {"avg_pool1d", [](const Task& t) { return avg_pool(t, 1, Size(t["l"])); }},
      {"avg_pool2d", [](const Task& t) { return avg_pool(t, Size(t["h"]), Size(t["h"])); }}};
  return serve({"1.0.0a3", makers, [](int) {}}, argc, argv);
}
