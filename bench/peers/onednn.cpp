#include <dnnl.hpp>

#include "product.hpp"

using namespace bench;
using dnnl::memory;

namespace {

const dnnl::engine& engine() {
  static const dnnl::engine made(dnnl::engine::kind::cpu, 0);
  return made;
}

dnnl::stream& stream() {
  static dnnl::stream made(engine());
  return made;
}

using Bound = std::unordered_map<int, memory>;

/// A tensor in the plain layout of this rank; the numbers are the frameworks'.
memory tensor(const memory::dims& dims, std::uint32_t seed, double bound = 1) {
  const memory::format_tag tags[] = {memory::format_tag::a, memory::format_tag::ab, memory::format_tag::abc,
                                     memory::format_tag::abcd};
  memory out({dims, memory::data_type::f32, tags[dims.size() - 1]}, engine());
  fill(static_cast<float*>(out.get_data_handle()), out.get_desc().get_size() / sizeof(float), seed, -bound, bound);
  return out;
}

void read(Values& values, const memory& tensor) {
  values.add(static_cast<const float*>(tensor.get_data_handle()), tensor.get_desc().get_size() / sizeof(float));
}

Work repeated(const dnnl::primitive& primitive, const Bound& arguments, const memory& result) {
  return {[=] {
            primitive.execute(stream(), arguments);
            stream().wait();
          },
          [=](Values& values) { read(values, result); }};
}

// --- products
// ---------------------------------------------------------------------------------------------------------

Work sgemm(const Task& t) {
  if (t.get("double", 0)) return {};
  return product_of<float>(t, [](const Product<float>& p) {
    dnnl_sgemm(p.ta ? 'T' : 'N', p.tb ? 'T' : 'N', p.m, p.n, p.k, 1, p.a, p.ta ? p.m : p.k, p.b, p.tb ? p.k : p.n, 0,
               p.c, p.n);
  });
}

// The interface of version 3 makes the other primitives in another way; libtorch brings that version.
#if DNNL_VERSION_MAJOR < 3

// --- convolutions: the layout of the weights is oneDNN's choice, and bringing them there is part of the time
// ----------

Work conv1d(const Task& t) {
  if (!t.is("pass", "forward") || t.get("groups", 1) != 1) return {};
  const memory::dim n = t["n"], c = t["c"], f = t["f"], l = t["l"], k = t["k"], s = t.get("s", 1), p = t["p"];
  const double bound = weight_bound(c * k);
  const memory x = tensor({n, c, l}, 1), w = tensor({f, c, k}, 2, bound), b = tensor({f}, 3, 0.1);
  const memory y = tensor({n, f, (l + 2 * p - k) / s + 1}, 4);
  const memory::desc any({f, c, k}, memory::data_type::f32, memory::format_tag::any);
  const dnnl::convolution_forward::desc desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
                                             x.get_desc(), any, b.get_desc(), y.get_desc(), {s}, {p}, {p});
  const dnnl::convolution_forward::primitive_desc chosen(desc, engine());
  const memory packed(chosen.weights_desc(), engine());
  const dnnl::reorder pack(w, packed);
  const dnnl::convolution_forward convolve(chosen);
  return {[=] {
            pack.execute(stream(), {{DNNL_ARG_FROM, w}, {DNNL_ARG_TO, packed}});
            convolve.execute(stream(),
                             {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, packed}, {DNNL_ARG_BIAS, b}, {DNNL_ARG_DST, y}});
            stream().wait();
          },
          [=](Values& values) { read(values, y); }};
}

// --- average pools
// ----------------------------------------------------------------------------------------------------

Work avg_pool(const Task& t, memory::dims in) {
  const std::size_t dims = in.size() - 2;
  const memory::dim k = t["k"], s = t.get("s", k), p = t.get("p", 0);
  memory::dims out = in;
  for (std::size_t i = 2; i < in.size(); ++i) out[i] = (in[i] + 2 * p - k) / s + 1;
  const memory x = tensor(in, 1), y = tensor(out, 99);
  const auto kind =
      t.get("count", 1) ? dnnl::algorithm::pooling_avg_include_padding : dnnl::algorithm::pooling_avg_exclude_padding;
  const memory::dims strides(dims, s), kernel(dims, k), padding(dims, p);
  const dnnl::pooling_forward::desc forward(dnnl::prop_kind::forward_training, kind, x.get_desc(), y.get_desc(),
                                            strides, kernel, padding, padding);
  const dnnl::pooling_forward::primitive_desc hint(forward, engine());
  if (t.is("pass", "forward")) return repeated(dnnl::pooling_forward(hint), {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}}, y);
  const dnnl::pooling_backward::desc backward(kind, x.get_desc(), y.get_desc(), strides, kernel, padding, padding);
  const dnnl::pooling_backward::primitive_desc chosen(backward, engine(), hint);
  return repeated(dnnl::pooling_backward(chosen), {{DNNL_ARG_DIFF_DST, y}, {DNNL_ARG_DIFF_SRC, x}}, x);
}

#endif

}  // namespace

int main(int argc, char** argv) {
  const dnnl_version_t* v = dnnl_version();
  const std::string version =
      std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
  std::map<std::string, Maker> makers = {{"product", sgemm}};
#if DNNL_VERSION_MAJOR < 3
  makers["conv1d"] = conv1d;
  makers["avg_pool1d"] = [](const Task& t) { return avg_pool(t, {t["n"], t["c"], t["l"]}); };
  makers["avg_pool2d"] = [](const Task& t) { return avg_pool(t, {t["n"], t["c"], t["h"], t["h"]}); };
#endif
  return serve({version, makers, [](int) {}}, argc, argv);
}
