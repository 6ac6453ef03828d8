// Answers the driver as a library does, but multiplies and adds and nothing else: the peak of the core at this moment.
// A processor's clock changes with its load and that of its neighbours, so it is taken in the turns of each row.
#include "machine_loops.hpp"
#include "peers/peer.hpp"

using namespace bench;

namespace {

volatile double sink;

/// With the usable set of this number, or nothing. What `values` tells are the operations of a repetition.
Work multiply_add(const Task& t) {
  const auto usable = usable_loops();
  const auto set = std::size_t(t["set"]);
  if (set >= usable.size()) return {};
  const MachineLoops* const loops = usable[set];
  return {[=] { sink = loops->multiply_add_float(); },
          [=](Values& values) {
            const double flops = 2 * kMultiplyAdds * double(loops->width / sizeof(float));
            values.add(&flops, 1);
          }};
}

}  // namespace

int main(int argc, char** argv) {
  return serve({"peak", {{"multiply_add", multiply_add}}, [](int) {}}, argc, argv);
}
