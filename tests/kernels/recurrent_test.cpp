#include "kernels/recurrent.hpp"

#include <tuple>

#include "support/accuracy.hpp"
#include "support/catch.hpp"
#include "support/kernel_check.hpp"
#include "support/oracle_recurrent.hpp"

using namespace taper;
using kernels::RecurrentCell;
using kernels::RecurrentParams;
using test::NaiveRecurrent;

namespace {

constexpr RecurrentCell kCells[] = {RecurrentCell::rnn_tanh, RecurrentCell::rnn_relu, RecurrentCell::lstm,
                                    RecurrentCell::gru};

struct CellAndProjection {
  RecurrentCell cell;
  std::int64_t proj_size;
};
constexpr CellAndProjection kCellsAndProjections[] = {{RecurrentCell::rnn_tanh, 0},
                                                      {RecurrentCell::rnn_relu, 0},
                                                      {RecurrentCell::lstm, 0},
                                                      {RecurrentCell::gru, 0},
                                                      {RecurrentCell::lstm, 5}};

/// A problem of this size with random numbers that float32 holds too.
NaiveRecurrent drawn_recurrent(const RecurrentParams& p, bool bias = true) {
  const std::int64_t gates = kernels::gates_of(p.cell) * p.hidden_size;
  const double bound = 1 / std::sqrt(double(p.hidden_size));
  const auto draw = [](std::int64_t n, std::uint64_t seed, double limit) {
    const auto narrow = test::numbers<float>(n, seed, -limit, limit);
    return std::vector<double>(narrow.begin(), narrow.end());
  };
  return {p,
          draw(p.steps * p.batch * p.input_size, 1, 1.5),
          draw(gates * p.input_size, 2, bound),
          draw(gates * p.state_size(), 3, bound),
          bias ? draw(gates, 4, bound) : std::vector<double>(),
          bias ? draw(gates, 5, bound) : std::vector<double>(),
          draw(p.batch * p.state_size(), 6, 1),
          draw(p.batch * p.hidden_size, 7, 1),
          draw(p.proj_size * p.hidden_size, 10, bound)};
}

template <class T>
struct RecurrentRun {
  std::vector<T> y, c_n;
  std::vector<T> dx, dw_ih, dw_hh, db_ih, db_hh, dh0, dc0, dw_hr;
};

/// Forward and backward with fixed weights of the outputs; gradients are added to `start`.
template <class T>
RecurrentRun<T> run_recurrent(const NaiveRecurrent& s, T start = 0, bool add = false) {
  const auto& p = s.p;
  const auto as = [](const std::vector<double>& v) { return std::vector<T>(v.begin(), v.end()); };
  const auto x = as(s.x), w_ih = as(s.w_ih), w_hh = as(s.w_hh), b_ih = as(s.b_ih), b_hh = as(s.b_hh), h0 = as(s.h0),
             c0 = as(s.c0), w_hr = as(s.w_hr);
  const auto filled = [&](const std::vector<T>& like) { return std::vector<T>(like.size(), start); };
  RecurrentRun<T> r{std::vector<T>(std::size_t(p.steps * p.batch * p.state_size())),
                    filled(c0),
                    filled(x),
                    filled(w_ih),
                    filled(w_hh),
                    filled(b_ih),
                    filled(b_hh),
                    filled(h0),
                    filled(c0),
                    filled(w_hr)};
  const bool lstm = p.cell == RecurrentCell::lstm;
  const kernels::RecurrentInputs<T> in{x.data(),
                                       w_ih.data(),
                                       w_hh.data(),
                                       b_ih.empty() ? nullptr : b_ih.data(),
                                       b_hh.empty() ? nullptr : b_hh.data(),
                                       h0.data(),
                                       lstm ? c0.data() : nullptr,
                                       w_hr.empty() ? nullptr : w_hr.data()};
  std::vector<T> memory(std::size_t(kernels::recurrent_memory(p, true)), T(NAN));
  kernels::recurrent_forward(p, in, r.y.data(), lstm ? r.c_n.data() : nullptr, memory.data());
  const auto dy = test::numbers<T>(std::int64_t(r.y.size()), 8), dc = test::numbers<T>(std::int64_t(c0.size()), 9);
  kernels::recurrent_backward<T>(p, in, r.y.data(), dy.data(), lstm ? dc.data() : nullptr, memory.data(),
                                 {.x = {r.dx.data(), add},
                                  .w_ih = {r.dw_ih.data(), add},
                                  .w_hh = {r.dw_hh.data(), add},
                                  .b_ih = {b_ih.empty() ? nullptr : r.db_ih.data(), add},
                                  .b_hh = {b_hh.empty() ? nullptr : r.db_hh.data(), add},
                                  .h0 = {r.dh0.data(), add},
                                  .c0 = {lstm ? r.dc0.data() : nullptr, add},
                                  .w_hr = {w_hr.empty() ? nullptr : r.dw_hr.data(), add}});
  return r;
}

/// The gradient of the oracle with respect to one of its arrays, under the same weights of the outputs.
std::vector<double> naive_gradient(const NaiveRecurrent& s, std::vector<double> NaiveRecurrent::*array) {
  const auto dy = test::numbers<double>(s.p.steps * s.p.batch * s.p.state_size(), 8);
  const auto dc = test::numbers<double>(s.p.batch * s.p.hidden_size, 9);
  return test::gradient(s.*array, [&](const std::vector<double>& v) {
    NaiveRecurrent at = s;
    at.*array = v;
    const test::NaiveStates out = test::naive_recurrent(at);
    double sum = 0;
    for (std::size_t i = 0; i < dy.size(); ++i) sum += dy[i] * out.y[i];
    if (s.p.cell == RecurrentCell::lstm)
      for (std::size_t i = 0; i < dc.size(); ++i) sum += dc[i] * out.c_n[i];
    return sum;
  });
}

std::vector<RecurrentParams> small_problems() {
  std::vector<RecurrentParams> all;
  for (const RecurrentCell cell : kCells)
    for (const bool batch_first : {false, true})
      for (const bool reverse : {false, true}) {
        all.push_back({cell, batch_first, reverse, 5, 3, 2, 7});
        all.push_back({cell, batch_first, reverse, 1, 2, 5, 3});
        all.push_back({cell, batch_first, reverse, 3, 19, 2, 5});  // several blocks of samples
        if (cell != RecurrentCell::lstm) continue;
        all.push_back({cell, batch_first, reverse, 5, 3, 2, 7, 4});
        all.push_back({cell, batch_first, reverse, 1, 2, 5, 3, 2});
        all.push_back({cell, batch_first, reverse, 3, 19, 2, 5, 1});
      }
  return all;
}

}  // namespace

TEST_CASE("recurrent layers give what their equations give, in float64 and float32") {
  for (const RecurrentParams& p : small_problems())
    for (const bool bias : {true, false}) {
      INFO(int(p.cell) << " " << p.batch_first << p.reverse << " steps " << p.steps << " batch " << p.batch << " to "
                       << p.proj_size);
      const NaiveRecurrent s = drawn_recurrent(p, bias);
      const test::NaiveStates expected = test::naive_recurrent(s);
      const auto wide = run_recurrent<double>(s);
      const auto narrow = run_recurrent<float>(s);
      CHECK(test::relative_error(wide.y, expected.y) < 1e-14);
      CHECK(test::relative_error(narrow.y, expected.y) < 1e-6);
      if (p.cell != RecurrentCell::lstm) continue;
      CHECK(test::relative_error(wide.c_n, expected.c_n) < 1e-14);
      CHECK(test::relative_error(narrow.c_n, expected.c_n) < 1e-6);
    }
}

TEST_CASE("recurrent layers have the gradients of their equations") {
  for (const RecurrentParams& p : small_problems()) {
    if (p.cell == RecurrentCell::rnn_relu) continue;  // its kinks: below
    INFO(int(p.cell) << " " << p.batch_first << p.reverse << " steps " << p.steps << " batch " << p.batch << " to "
                     << p.proj_size);
    const NaiveRecurrent s = drawn_recurrent(p);
    const auto wide = run_recurrent<double>(s);
    const auto narrow = run_recurrent<float>(s);
    const auto check = [&](const std::vector<double>& got, const std::vector<float>& got_narrow, auto array) {
      const auto expected = naive_gradient(s, array);
      CHECK(test::distance(got, expected) < 1e-9);
      CHECK(test::relative_error(got_narrow, expected) < 3e-6);
    };
    check(wide.dx, narrow.dx, &NaiveRecurrent::x);
    check(wide.dw_ih, narrow.dw_ih, &NaiveRecurrent::w_ih);
    check(wide.dw_hh, narrow.dw_hh, &NaiveRecurrent::w_hh);
    check(wide.db_ih, narrow.db_ih, &NaiveRecurrent::b_ih);
    check(wide.db_hh, narrow.db_hh, &NaiveRecurrent::b_hh);
    check(wide.dh0, narrow.dh0, &NaiveRecurrent::h0);
    if (p.cell == RecurrentCell::lstm) check(wide.dc0, narrow.dc0, &NaiveRecurrent::c0);
    if (p.proj_size > 0) check(wide.dw_hr, narrow.dw_hr, &NaiveRecurrent::w_hr);
  }
}

TEST_CASE("a recurrent layer of max(a, 0) sends the gradient of positive states alone") {
  // Two steps of one number: a1 = 2 x1 + h0, a2 = 2 x2 + h1.
  const RecurrentParams p{RecurrentCell::rnn_relu, false, false, 2, 1, 1, 1};
  const auto dx_of = [&](double x1, double x2) {
    const NaiveRecurrent s{p, {x1, x2}, {2}, {1}, {}, {}, {0.5}, {0.0}};
    const auto dy = test::numbers<double>(2, 8);
    const auto dx = run_recurrent<double>(s).dx;
    return std::vector<double>{dx[0] - 2 * dy[0], dx[1] - 2 * dy[1], dy[1]};
  };
  const auto both = dx_of(1, 1);
  CHECK(both[0] == 2 * both[2]);
  CHECK(both[1] == 0);
  CHECK(dx_of(1, -3)[0] == 0);                                    // the second step is off: nothing comes back from it
  CHECK(dx_of(-1, 1)[0] == -2 * test::numbers<double>(2, 8)[0]);  // the first step is off
  CHECK(dx_of(-0.25, 1)[0] == -2 * test::numbers<double>(2, 8)[0]);  // a1 = 0 counts as off
}

TEST_CASE("gradients of recurrent layers are added to what is there, or overwrite it") {
  for (const auto& [cell, proj_size] : kCellsAndProjections) {
    const NaiveRecurrent s = drawn_recurrent({cell, true, false, 5, 3, 2, 7, proj_size});
    const auto fresh = run_recurrent<double>(s), overwritten = run_recurrent<double>(s, 3.0, false),
               added = run_recurrent<double>(s, 3.0, true);
    using Field = std::vector<double> RecurrentRun<double>::*;
    for (const Field field : {&RecurrentRun<double>::dx, &RecurrentRun<double>::dw_ih, &RecurrentRun<double>::dw_hh,
                              &RecurrentRun<double>::db_ih, &RecurrentRun<double>::db_hh, &RecurrentRun<double>::dh0,
                              &RecurrentRun<double>::dc0, &RecurrentRun<double>::dw_hr}) {
      if (field == &RecurrentRun<double>::dc0 && cell != RecurrentCell::lstm) continue;
      CHECK(overwritten.*field == fresh.*field);
      std::vector<double> expected = fresh.*field;
      for (double& v : expected) v += 3;
      CHECK(test::distance(added.*field, expected) < 1e-14);
    }
  }
}

TEST_CASE("recurrent layers give the same bits on any number of threads") {
  for (const auto& [cell, proj_size] : kCellsAndProjections)
    for (const auto& [batch_first, batch] : {std::pair{false, 53}, {true, 53}, {true, 16}, {false, 7}}) {
      const NaiveRecurrent s = drawn_recurrent({cell, batch_first, true, 11, batch, 13, 37, proj_size});
      CHECK(test::same_on_any_threads([&] {
        const auto r = run_recurrent<float>(s);
        std::vector<float> all = r.y;
        for (const auto* part : {&r.c_n, &r.dx, &r.dw_ih, &r.dw_hh, &r.db_ih, &r.db_hh, &r.dh0, &r.dc0, &r.dw_hr})
          all.insert(all.end(), part->begin(), part->end());
        return all;
      }));
    }
}

TEST_CASE("recurrent layers of a useful size keep float32's accuracy") {
  for (const auto& [cell, proj_size] : kCellsAndProjections)
    for (const auto& [batch, hidden, projection] : {std::tuple{7, 67, 3 * proj_size}, {19, 320, proj_size ? 64 : 0}}) {
      const NaiveRecurrent s = drawn_recurrent({cell, true, false, 11, batch, 31, hidden, projection});
      const auto narrow = run_recurrent<float>(s);
      const auto wide = run_recurrent<double>(s);
      INFO(int(cell) << " " << hidden);
      const test::NaiveStates expected = test::naive_recurrent(s);
      CHECK(test::relative_error(wide.y, expected.y) < 1e-13);
      CHECK(test::relative_error(narrow.y, expected.y) < 1e-6);
      CHECK(test::relative_error(narrow.dx, wide.dx) < 2e-6);
      CHECK(test::relative_error(narrow.dw_hh, wide.dw_hh) < 2e-6);
    }
}

TEST_CASE("a recurrent layer of no samples has zero gradients") {
  for (const auto& [cell, proj_size] : kCellsAndProjections) {
    const auto r = run_recurrent<double>(drawn_recurrent({cell, false, false, 5, 0, 2, 7, proj_size}), 7.0, false);
    CHECK(r.y.empty());
    CHECK(r.dw_ih == std::vector<double>(r.dw_ih.size(), 0.0));
    CHECK(r.dw_hh == std::vector<double>(r.dw_hh.size(), 0.0));
    CHECK(r.db_hh == std::vector<double>(r.db_hh.size(), 0.0));
    CHECK(r.dw_hr == std::vector<double>(r.dw_hr.size(), 0.0));
  }
}
