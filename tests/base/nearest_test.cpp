#include "base/nearest.hpp"

#include <vector>

#include "support/catch.hpp"

using namespace taper;

namespace {

const std::vector<std::string_view> kKeys = {"type",   "name",    "in_channels", "out_channels", "kernel_size",
                                             "stride", "padding", "dilation",    "groups",       "bias",
                                             "lr",     "p",       "eps",         "ceil_mode",    "count_include_pad"};
const std::vector<std::string_view> kTypes = {
    "Conv1d", "Conv2d", "AvgPool1d",        "AvgPool2d", "MaxPool1d", "MaxPool2d",        "BatchNorm1d",
    "Linear", "ReLU",   "CrossEntropyLoss", "Adam",      "AdamW",     "AdaptiveAvgPool1d"};

}  // namespace

TEST_CASE("the nearest name survives typing mistakes") {
  CHECK(nearest("kernal_size", kKeys) == "kernel_size");
  CHECK(nearest("kernel_szie", kKeys) == "kernel_size");
  CHECK(nearest("strides", kKeys) == "stride");
  CHECK(nearest("pading", kKeys) == "padding");
  CHECK(nearest("tpye", kKeys) == "type");
  CHECK(nearest("rl", kKeys) == "lr");
  CHECK(nearest("epsilon", kKeys) == "eps");
  CHECK(nearest("out_chanels", kKeys) == "out_channels");
  CHECK(nearest("Adma", kTypes) == "Adam");
  CHECK(nearest("AvgPool4d", kTypes) == "AvgPool1d");
}

TEST_CASE("the nearest name does not mind case, separators and the order of words") {
  CHECK(nearest("KernelSize", kKeys) == "kernel_size");
  CHECK(nearest("kernel-size", kKeys) == "kernel_size");
  CHECK(nearest("size_kernel", kKeys) == "kernel_size");
  CHECK(nearest("channels_out", kKeys) == "out_channels");
  CHECK(nearest("conv1D", kTypes) == "Conv1d");
  CHECK(nearest("max_pool2d", kTypes) == "MaxPool2d");
  CHECK(nearest("relu", kTypes) == "ReLU");
  CHECK(nearest("adamw", kTypes) == "AdamW");
}

TEST_CASE("the nearest name completes a beginning or a word") {
  CHECK(nearest("kernel", kKeys) == "kernel_size");
  CHECK(nearest("pad", kKeys) == "padding");
  CHECK(nearest("bias_term", kKeys) == "bias");
  CHECK(nearest("channels", kKeys) == "in_channels");
  CHECK(nearest("CrossEntropy", kTypes) == "CrossEntropyLoss");
  CHECK(nearest("BatchNorm", kTypes) == "BatchNorm1d");
}

TEST_CASE("what is near to nothing gets no suggestion") {
  CHECK(nearest("momentum", kKeys).empty());
  CHECK(nearest("x", kKeys).empty());
  CHECK(nearest("q", kKeys).empty());
  CHECK(nearest("", kKeys).empty());
  CHECK(nearest("__", kKeys).empty());
  CHECK(nearest("Transformer", kTypes).empty());
  CHECK(nearest("kernel_size", {}).empty());
  CHECK(nearest(std::string(1 << 20, 'k'), kKeys).empty());
  CHECK(did_you_mean("momentum", kKeys).empty());
  CHECK(did_you_mean("kernal_size", kKeys) == "; did you mean kernel_size?");
}
