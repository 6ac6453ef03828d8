#include "taper/taper.hpp"

#include "models.hpp"

namespace {

namespace f = taper::nn::functional;
namespace nn = taper::nn;
namespace optim = taper::optim;
using bench::Extents;
using bench::Strides;
using bench::Task;
using bench::Windows;

struct Taper {
  using Tensor = taper::Tensor;
  using Tensors = std::vector<Tensor>;
  using NoGrad = taper::NoGradGuard;

  static Tensor zeros(const Extents& shape, bool is_double) {
    return taper::zeros(taper::Shape(shape), is_double ? taper::DType::float64 : taper::DType::float32);
  }
  static Tensor integers(const Extents& shape) { return taper::zeros(taper::Shape(shape), taper::DType::int64); }
  template <class T>
  static T* data(const Tensor& x) {
    return x.data<T>();
  }
  static std::size_t numel(const Tensor& x) { return std::size_t(x.numel()); }
  static bool is_double(const Tensor& x) { return x.dtype() == taper::DType::float64; }
  static Extents shape(const Tensor& x) { return Extents(x.shape().begin(), x.shape().end()); }

  static void require_grad(const Tensor& x) { x.requires_grad_(); }
  static void set_grad(const Tensor& x, const Tensor& gradient) { x.set_grad(gradient); }
  static Tensor gradient(const Tensor& x) { return x.grad(); }
  static Tensors grad(const Tensor& y, const Tensors& leaves, const Tensor& gradient, bool retain) {
    return taper::autograd::grad({y}, leaves, {gradient}, {.retain_graph = retain});
  }

  static void flush_denormals(bool on) { taper::set_flush_denormal(on); }

  static Tensor add(const Tensor& a, const Tensor& b) { return a + b; }
  static Tensor mul(const Tensor& a, const Tensor& b) { return a * b; }
  static Tensor sum(const Tensor& x) { return x.sum(); }
  static Tensor relu(const Tensor& x) { return taper::relu(x); }
  static Tensor squeeze(const Tensor& x, std::int64_t dim) { return x.squeeze(dim); }
  static Tensor flatten(const Tensor& x) { return x.flatten(1); }
  static Tensor swapped(const Tensor& x) { return x.transpose(1, 2); }
  static Tensor transpose(const Tensor& x) { return swapped(x); }
  static Tensor reshape(const Tensor& x, const Extents& shape) { return x.reshape(taper::Shape(shape)); }
  static Tensor select(const Tensor& x, std::int64_t index) { return x.select(0, index); }
  static Tensor mean(const Tensor& x, std::int64_t dim) { return x.mean(dim); }
  static Tensor cat(const Tensor& a, const Tensor& b) { return taper::cat({a, b}, 1); }
  static Tensor gelu(const Tensor& x) { return taper::gelu(x); }
  static Tensor sigmoid(const Tensor& x) { return taper::sigmoid(x); }
  static Tensor mse_loss(const Tensor& x, const Tensor& y) { return f::mse_loss(x, y); }
  static Tensor upsample(const Tensor& x) { return f::interpolate(x, {.scale_factor = 2.0}); }
  static Tensor matmul(const Tensor& a, const Tensor& b, bool ta, bool tb) { return taper::matmul(a, b, ta, tb); }
  static Tensor linear(const Tensor& x, const Tensor& w, const Tensor& b) { return f::linear(x, w, b); }
  static Tensor softmax(const Tensor& x) { return x.softmax(-1); }
  static Tensor log_softmax(const Tensor& x) { return x.log_softmax(-1); }
  static Tensor cross_entropy(const Tensor& x, const Tensor& y) { return f::cross_entropy(x, y); }
  static Tensor embedding(const Tensor& rows, const Tensor& w) { return f::embedding(rows, w); }
  static Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v) {
    return f::scaled_dot_product_attention(q, k, v);
  }

  static std::map<std::string, Tensor (*)(const Tensor&)> maps() {
    return {{"relu", taper::relu}, {"exp", taper::exp},  {"log", taper::log},
            {"tanh", taper::tanh}, {"sigmoid", sigmoid}, {"sqrt", [](const Tensor& x) { return taper::abs(x).sqrt(); }},
            {"gelu", gelu}};
  }
  static std::map<std::string, Tensor (*)(const Tensor&, std::int64_t)> reductions() {
    return {{"mean", mean},
            {"sum", [](const Tensor& x, std::int64_t dim) { return x.sum(dim); }},
            {"max", [](const Tensor& x, std::int64_t dim) { return x.amax(dim); }},
            {"var", [](const Tensor& x, std::int64_t dim) { return taper::var(x, {dim}); }}};
  }

  using Operation = Tensor (*)(const Tensors& x, const Tensor& index);
  static std::map<std::string, Operation> operations() {
    return {{"reverse",
             [](const Tensors& x, const Tensor&) {
               return x[0].permute({2, 1, 0});
             }},
            {"stack_last",
             [](const Tensors& x, const Tensor&) {
               return taper::stack({x[0], x[1]}, -1);
             }},
            {"cat", [](const Tensors& x, const Tensor&) { return cat(x[0], x[1]); }},
            {"pad_zeros",
             [](const Tensors& x, const Tensor&) {
               return taper::pad(x[0], {1, 1, 1, 1});
             }},
            {"pad_replicate",
             [](const Tensors& x, const Tensor&) {
               return taper::pad(x[0], {1, 1, 1, 1}, taper::PadMode::replicate);
             }},
            {"index_select", [](const Tensors& x, const Tensor& i) { return taper::index_select(x[0], 1, i); }},
            {"gather", [](const Tensors& x, const Tensor& i) { return taper::gather(x[0], 1, i); }},
            {"prelu", [](const Tensors& x, const Tensor&) { return f::prelu(x[0], x[1]); }},
            {"nearest", [](const Tensors& x, const Tensor&) { return upsample(x[0]); }},
            {"bilinear",
             [](const Tensors& x, const Tensor&) {
               return f::interpolate(x[0], {.scale_factor = 2.0, .mode = nn::UpsampleMode::bilinear});
             }},
            {"mul", [](const Tensors& x, const Tensor&) { return x[0] * x[1]; }},
            {"plus", [](const Tensors& x, const Tensor&) { return x[0] + x[1]; }},
            {"quotient", [](const Tensors& x, const Tensor&) { return x[0] / x[1]; }},
            {"maximum", [](const Tensors& x, const Tensor&) { return taper::maximum(x[0], x[1]); }},
            {"pad_ends",
             [](const Tensors& x, const Tensor&) {
               return taper::pad(x[0], {1, 2});
             }},
            {"select_last", [](const Tensors& x, const Tensor&) { return x[0].select(-1, 1); }},
            {"nearest_1d", [](const Tensors& x, const Tensor&) { return upsample(x[0]); }},
            {"sum_0_2",
             [](const Tensors& x, const Tensor&) {
               return taper::sum(x[0], {0, 2});
             }},
            {"sum_1", [](const Tensors& x, const Tensor&) { return taper::sum(x[0], {1}); }},
            {"prod_1", [](const Tensors& x, const Tensor&) { return taper::prod(x[0], 1); }},
            {"amax_1", [](const Tensors& x, const Tensor&) { return taper::amax(x[0], {1}); }},
            {"amax_pool_1d",
             [](const Tensors& x, const Tensor&) { return f::adaptive_max_pool1d(x[0], {.output_size = 5}); }},
            {"matmul", [](const Tensors& x, const Tensor&) { return taper::matmul(x[0], x[1]); }},
            {"prod", [](const Tensors& x, const Tensor&) { return taper::prod(x[0], -1); }},
            {"norm", [](const Tensors& x, const Tensor&) { return taper::norm(x[0], 2, {-1}); }},
            {"var", [](const Tensors& x, const Tensor&) { return taper::var(x[0], {-1}); }},
            {"logsumexp", [](const Tensors& x, const Tensor&) { return taper::logsumexp(x[0], {-1}); }},
            {"amax", [](const Tensors& x, const Tensor&) { return taper::amax(x[0], {-1}); }},
            {"sin", [](const Tensors& x, const Tensor&) { return taper::sin(x[0]); }},
            {"power", [](const Tensors& x, const Tensor&) { return taper::pow(x[0], 2.5); }},
            {"softmax_1", [](const Tensors& x, const Tensor&) { return x[0].softmax(1); }},
            {"log_softmax_1", [](const Tensors& x, const Tensor&) { return x[0].log_softmax(1); }},
            {"smoothed",
             [](const Tensors& x, const Tensor& i) { return f::cross_entropy(x[0], i, {.label_smoothing = 0.1}); }},
            {"cross_entropy", [](const Tensors& x, const Tensor& i) { return f::cross_entropy(x[0], i); }},
            {"causal",
             [](const Tensors& x, const Tensor&) {
               return f::scaled_dot_product_attention(x[0], x[1], x[2], {}, {.is_causal = true});
             }},
            {"adaptive_max_1",
             [](const Tensors& x, const Tensor&) { return f::adaptive_max_pool2d(x[0], {.output_size = 1}); }},
            {"adaptive_max_5",
             [](const Tensors& x, const Tensor&) { return f::adaptive_max_pool2d(x[0], {.output_size = 5}); }},
            {"max_pool3d", [](const Tensors& x, const Tensor&) { return f::max_pool3d(x[0], {.kernel_size = 2}); }},
            {"avg_pool3d", [](const Tensors& x, const Tensor&) { return f::avg_pool3d(x[0], {.kernel_size = 2}); }},
            {"conv3d", [](const Tensors& x, const Tensor&) { return f::conv3d(x[0], x[1], {}, {.padding = 1}); }}};
  }

  template <class O>
  static O strided(const Strides& s) {
    O out;
    out.stride = s.stride, out.padding = s.padding, out.dilation = s.dilation, out.groups = s.groups;
    return out;
  }
  static Tensor conv1d(const Tensor& x, const Tensor& w, const Tensor& b, const Strides& s) {
    return f::conv1d(x, w, b, strided<nn::Conv1dFuncOptions>(s));
  }
  static Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor& b, const Strides& s) {
    return f::conv2d(x, w, b, strided<nn::Conv2dFuncOptions>(s));
  }
  static Tensor conv_transpose(const Tensor& x, const Tensor& w, const Tensor& b, const Strides& s) {
    return x.dim() == 3 ? f::conv_transpose1d(x, w, b, strided<nn::ConvTranspose1dFuncOptions>(s))
                        : f::conv_transpose2d(x, w, b, strided<nn::ConvTranspose2dFuncOptions>(s));
  }

  template <class O>
  static O options(const Windows& w) {
    O out{.kernel_size = w.kernel, .stride = w.stride, .padding = w.padding};
    if constexpr (requires { out.count_include_pad; }) out.count_include_pad = w.counts_padding;
    return out;
  }
  static Tensor avg_pool1d(const Tensor& x, const Windows& w) {
    return f::avg_pool1d(x, options<nn::AvgPool1dOptions>(w));
  }
  static Tensor avg_pool2d(const Tensor& x, const Windows& w) {
    return f::avg_pool2d(x, options<nn::AvgPool2dOptions>(w));
  }
  static Tensor max_pool1d(const Tensor& x, const Windows& w) {
    return f::max_pool1d(x, options<nn::MaxPool1dOptions>(w));
  }
  static Tensor max_pool2d(const Tensor& x, const Windows& w) {
    return f::max_pool2d(x, options<nn::MaxPool2dOptions>(w));
  }
  static Tensor adaptive_avg_pool1d(const Tensor& x, std::int64_t outputs) {
    return f::adaptive_avg_pool1d(x, {.output_size = outputs});
  }
  static Tensor adaptive_avg_pool2d(const Tensor& x, std::int64_t outputs) {
    return f::adaptive_avg_pool2d(x, {.output_size = outputs});
  }

  static Tensor layer_norm(const Tensor& x, const Tensor& w, const Tensor& b) {
    return f::layer_norm(x, w.shape(), w, b);
  }
  static Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& w, const Tensor& b) {
    return f::group_norm(x, groups, w, b);
  }
  static Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& var, const Tensor& w, const Tensor& b,
                           bool training) {
    return f::batch_norm(x, mean, var, w, b, {.training = training});
  }
  static Tensor lstm(const Tensor& x, const Tensors& w) {
    const nn::RecurrentWeights weights{w[0], w[1], w[2], w[3]};
    return f::lstm(x, std::span(&weights, 1)).output;
  }
  static Tensor gru(const Tensor& x, const Tensors& w) {
    const nn::RecurrentWeights weights{w[0], w[1], w[2], w[3]};
    return f::gru(x, std::span(&weights, 1)).output;
  }

  template <class O>
  static std::function<void()> stepping(const Tensors& parameters, const typename O::Options& options) {
    return [made = std::make_shared<O>(parameters, options)] { made->step(); };
  }
  static std::function<void()> optimizer(const Task& t, const Tensors& parameters) {
    if (t.is("f", "adam")) return stepping<optim::Adam>(parameters, {.lr = 1e-3});
    if (t.is("f", "adamw")) return stepping<optim::AdamW>(parameters, {.lr = 1e-3});
    if (t.is("f", "rmsprop")) return stepping<optim::RMSprop>(parameters, {.lr = 1e-3});
    if (t.is("f", "momentum")) return stepping<optim::SGD>(parameters, {.lr = 1e-3, .momentum = 0.9});
    return stepping<optim::SGD>(parameters, {.lr = 1e-3});
  }
  using Loss = std::function<Tensor(const Tensor& x, const Tensor& target)>;
  static std::function<void()> train_step(const Tensors& parameters, const Loss& loss, const Tensor& x,
                                          const Tensor& target) {
    const auto adam = std::make_shared<optim::Adam>(parameters, optim::AdamOptions{.lr = 1e-3});
    const auto step = std::make_shared<taper::CapturedStep>([=](const Tensor& input, const Tensor& wanted) {
      adam->zero_grad();
      loss(input, wanted).backward();
      adam->step();
    });
    return [=] { (*step)(x, target); };
  }
};

}  // namespace

int main(int argc, char** argv) {
  const std::string version = std::string(TAPER_BENCH_VERSION) + " with " + taper::get_cpu_capability();
  return bench::serve({version, bench::all_makers<Taper>(), taper::set_num_threads}, argc, argv);
}
