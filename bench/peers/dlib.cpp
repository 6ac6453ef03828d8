#include <dlib/cuda/tensor_tools.h>
#include <dlib/revision.h>

#include <cmath>
#include <memory>

#include "peer.hpp"

using namespace bench;
using dlib::resizable_tensor;

namespace {

using Made = std::shared_ptr<resizable_tensor>;

Made tensor(long n, long c, long h, long w, std::uint32_t seed, double bound = 1) {
  const auto out = std::make_shared<resizable_tensor>(n, c, h, w);
  fill(out->host(), out->size(), seed, -bound, bound);
  return out;
}

std::function<void(Values&)> reading(const Made& result) {
  return [=](Values& values) { values.add(result->host(), result->size()); };
}

/// Of `h` rows: a one-dimensional task is one of one row.
Work conv(const Task& t, long h, long w) {
  if (!t.is("pass", "forward") || t.get("groups", 1) != 1) return {};
  const long c = t["c"], f = t["f"], k = t["k"], kh = h == 1 ? 1 : k, p = t["p"], s = t.get("s", 1);
  const double bound = weight_bound(c * kh * k);
  const Made x = tensor(t["n"], c, h, w, 1), filters = tensor(f, c, kh, k, 2, bound), b = tensor(1, f, 1, 1, 3, 0.1);
  const auto y = std::make_shared<resizable_tensor>();
  const auto convolve = std::make_shared<dlib::tt::tensor_conv>();
  convolve->setup(*x, *filters, h == 1 ? 1 : int(s), int(s), h == 1 ? 0 : int(p), int(p));
  return {[=] {
            (*convolve)(false, *y, *x, *filters);
            dlib::tt::add(1, *y, 1, *b);
          },
          reading(y)};
}

/// dlib never counts the padding.
Work pool(const Task& t, long h, long w, bool average) {
  const long k = t["k"], s = t.get("s", k), p = t.get("p", 0);
  if (average && p > 0 && t.get("count", 1)) return {};
  const Made x = tensor(t["n"], t["c"], h, w, 1);
  const auto y = std::make_shared<resizable_tensor>();
  const auto windows = std::make_shared<dlib::tt::pooling>();
  const bool flat = h == 1;
  const auto setup = average ? &dlib::tt::pooling::setup_avg_pooling : &dlib::tt::pooling::setup_max_pooling;
  ((*windows).*setup)(flat ? 1 : int(k), int(k), flat ? 1 : int(s), int(s), flat ? 0 : int(p), int(p));
  (*windows)(*y, *x);
  if (t.is("pass", "forward")) return {[=] { (*windows)(*y, *x); }, reading(y)};
  const Made gradient = tensor(y->num_samples(), y->k(), y->nr(), y->nc(), 99);
  const auto dx = std::make_shared<resizable_tensor>(x->num_samples(), x->k(), x->nr(), x->nc());
  return {[=] {
            *dx = 0;  // dlib adds to it
            windows->get_gradient(*gradient, *y, *x, *dx);
          },
          reading(dx)};
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, Maker> makers = {
      {"conv1d", [](const Task& t) { return conv(t, 1, t["l"]); }},
      {"conv2d", [](const Task& t) { return conv(t, t["h"], t["h"]); }},
      {"avg_pool1d", [](const Task& t) { return pool(t, 1, t["l"], true); }},
      {"avg_pool2d", [](const Task& t) { return pool(t, t["h"], t["h"], true); }},
      {"max_pool2d", [](const Task& t) { return pool(t, t["h"], t["h"], false); }}};
  const std::string version = std::to_string(DLIB_MAJOR_VERSION) + "." + std::to_string(DLIB_MINOR_VERSION);
  return serve({version, makers, [](int) {}}, argc, argv);
}
