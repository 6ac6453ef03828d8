#include "kernels/activations.hpp"

#include "kernels/map_driver.hpp"

namespace taper::kernels {

TAPER_INSTANTIATE_MAP(Tanh);
TAPER_INSTANTIATE_MAP(Sigmoid);
TAPER_INSTANTIATE_MAP(Relu);
TAPER_INSTANTIATE_MAP(LeakyRelu);
TAPER_INSTANTIATE_MAP(Elu);
TAPER_INSTANTIATE_MAP(Selu);
TAPER_INSTANTIATE_MAP(Gelu);
TAPER_INSTANTIATE_MAP(GeluTanh);
TAPER_INSTANTIATE_MAP(Silu);
TAPER_INSTANTIATE_MAP(Softplus);

}  // namespace taper::kernels
