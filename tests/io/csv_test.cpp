#include <clocale>

#include "support/catch.hpp"
#include "support/message_of.hpp"
#include "support/peak_memory.hpp"
#include "support/temp_folder.hpp"
#include "taper/io.hpp"

using namespace taper;
using namespace taper::io;

namespace {

using Floats = std::vector<float>;
using Indices = std::vector<std::int64_t>;
using Names = std::vector<std::string>;

CsvTable parse(const std::string& text, const CsvOptions& options = {}) {
  return csv_from_bytes(text, options, "x.csv");
}
Floats inputs(const std::string& text, const CsvOptions& options = {}) {
  return parse(text, options).inputs.to_vector<float>();
}
std::string csv_refusal(const std::string& text, const CsvOptions& options = {}) {
  return test::message_of([&] { parse(text, options); });
}

const std::string kIris =
    "length,width,species\n5.1,3.5,setosa\n6.2,2.9,virginica\n4.9,3,setosa\n5.5,2.3,fancy\n5.0,2.0,virginica\n";

}  // namespace

TEST_CASE("a table gives inputs, class indices and the names of both") {
  const CsvTable table = parse(kIris, {.target = "species"});
  CHECK(table.inputs.shape() == Shape{5, 2});
  CHECK(table.inputs.dtype() == DType::float32);
  CHECK(table.inputs.to_vector<float>() == Floats{5.1f, 3.5f, 6.2f, 2.9f, 4.9f, 3.f, 5.5f, 2.3f, 5.f, 2.f});
  CHECK(table.targets.dtype() == DType::int64);
  CHECK(table.targets.to_vector<std::int64_t>() == Indices{1, 2, 1, 0, 2});
  CHECK(table.labels == Names{"fancy", "setosa", "virginica"});
  CHECK(table.input_names == Names{"length", "width"});
  CHECK(table.target_name == "species");
}

TEST_CASE("columns are chosen by name, by position, and by position from the back") {
  CHECK(inputs(kIris, {.inputs = {"width", "length"}, .target = "-1"}) ==
        Floats{3.5f, 5.1f, 2.9f, 6.2f, 3.f, 4.9f, 2.3f, 5.5f, 2.f, 5.f});
  CHECK(inputs(kIris, {.inputs = {"1"}}) == Floats{3.5f, 2.9f, 3.f, 2.3f, 2.f});
  const CsvTable quantity = parse(kIris, {.inputs = {"width"}, .target = "length", .target_is_class = false});
  CHECK(quantity.targets.dtype() == DType::float32);
  CHECK(quantity.targets.to_vector<float>() == Floats{5.1f, 6.2f, 4.9f, 5.5f, 5.f});
  CHECK(quantity.labels.empty());
  CHECK_FALSE(parse("1,2\n3,4\n").targets.defined());
  // A name wins over a position.
  CHECK(inputs("1,0\n7,8\n", {.header = true, .inputs = {"0"}}) == Floats{8});

  const std::string none =
      "x.csv: no such column: expected one of length, width, species or a position from -3 to 2, got ";
  CHECK(csv_refusal(kIris, {.target = "specie"}) == none + "specie");
  CHECK(csv_refusal(kIris, {.inputs = {"3"}}) == none + "3");
  CHECK(csv_refusal(kIris, {.inputs = {"-4"}}) == none + "-4");
  CHECK(csv_refusal(kIris, {.inputs = {"1.0"}}) == none + "1.0");
  CHECK(csv_refusal(kIris, {.inputs = {"width", "1"}}) == "x.csv: column is chosen twice: 1");
  CHECK(csv_refusal(kIris, {.inputs = {"species"}, .target = "species"}) ==
        "x.csv: column is both input and target: species");
  CHECK(csv_refusal("a,a\n1,2\n", {.inputs = {"a"}}) == "x.csv: several columns have this name; choose by position: a");
  CHECK(csv_refusal("a\n1\n", {.target = "a"}) ==
        "x.csv: no column is left for the inputs; the target is the only one");
}

TEST_CASE("a header is there when no field of the first row is a number, unless it is said") {
  CHECK(inputs("1,2\n3,4\n") == Floats{1, 2, 3, 4});
  CHECK(parse("1,2\n3,4\n").input_names == Names{"0", "1"});
  CHECK(inputs("a,b\n3,4\n") == Floats{3, 4});
  CHECK(inputs("1,2\n3,4\n", {.header = true}) == Floats{3, 4});
  CHECK(csv_refusal("a,b\n3,4\n", {.header = false}) == "x.csv: row 1, column 0: expected a number, got a");
  CHECK(parse("5,setosa\n6,virginica\n", {.target = "1"}).labels == Names{"setosa", "virginica"});
}

TEST_CASE("the delimiter is found from the first rows, or given") {
  for (const char delimiter : {',', ';', '|', '\t'}) {
    std::string text = "a,b\n1,2\n-3,4e1\n";
    for (char& c : text)
      if (c == ',') c = delimiter;
    CAPTURE(delimiter);
    CHECK(inputs(text) == Floats{1, 2, -3, 40});
    CHECK(inputs(text, {.delimiter = std::string(1, delimiter)}) == Floats{1, 2, -3, 40});
  }
  CHECK(inputs("\"a,b\";c\n1;2\n") == Floats{1, 2});
  CHECK(inputs("a\n1\n2\n") == Floats{1, 2});
  CHECK(csv_refusal("1;2\n", {.delimiter = ",", .header = false}) ==
        "x.csv: row 1, column 0: expected a number, got 1;2");
  CHECK(csv_refusal("1;2\n", {.delimiter = "::"}) == "x.csv: delimiter: expected ',', ';', '|' or a tab, got '::'");
}

TEST_CASE("quoted fields hold delimiters, quotes and line ends") {
  const CsvTable table =
      parse("\"size, in \"\"cm\"\"\",\"class\r\nname\"\r\n\"1.5\",\"a,b\"\r\n2.5,\"c\nd\"\r\n", {.target = "1"});
  CHECK(table.input_names == Names{"size, in \"cm\""});
  CHECK(table.target_name == "class\r\nname");
  CHECK(table.inputs.to_vector<float>() == Floats{1.5f, 2.5f});
  CHECK(table.labels == Names{"a,b", "c\nd"});
  CHECK(csv_refusal("a,b\n1,\"2\n3,4\n") == "x.csv: row 2: the closing quote is missing");
  CHECK(csv_refusal("a,b\n1,2\"3\n") ==
        "x.csv: row 2: a quote inside a field: expected the whole field in quotes, with doubled quotes inside");
  CHECK(csv_refusal("a,b\n1,\"2\"3\n") == "x.csv: row 2: text after a closing quote");
  CHECK(csv_refusal("a,b\n1,2\r3,4\n") == "x.csv: row 2: a carriage return without a line feed");
  CHECK(csv_refusal(std::string("a,b\n1,\0\n", 8)) == "x.csv: row 2: a NUL byte: expected UTF-8 text");
}

TEST_CASE("line ends, byte-order mark, spaces, empty lines and a missing last line end change nothing") {
  CHECK(inputs("\xEF\xBB\xBF"
               "1,2\r\n3,4") == Floats{1, 2, 3, 4});
  CHECK(parse("\xEF\xBB\xBF"
              "a,b\n1,2\n")
            .input_names == Names{"a", "b"});
  CHECK(inputs(" 1 ,\t2\n\n\n+3 , 4\n\n") == Floats{1, 2, 3, 4});
  CHECK(csv_refusal("\xFF\xFE"
                    "1,2\n") == "x.csv: text is UTF-16: expected UTF-8");
  CHECK(csv_refusal("a,\xFF\n1,2\n") == "x.csv: row 1: text is not UTF-8");
  CHECK(csv_refusal("1,\xFF\n", {.target = "1"}) == "x.csv: row 1, column 1: text is not UTF-8");
}

TEST_CASE("missing values are refused with row and column unless a fill is given") {
  const std::string missing = ": value is missing; give a fill value or remove the row";
  CHECK(csv_refusal("a,b\n1,2\n3,\n") == "x.csv: row 3, column b" + missing);
  CHECK(csv_refusal("a,b\n1,2\nNA,4\n") == "x.csv: row 3, column a" + missing);
  CHECK(csv_refusal("1,2\n\n?,4\n") == "x.csv: row 3, column 0" + missing);
  CHECK(csv_refusal("a\n1\n\n2\n") == "x.csv: row 3, column a" + missing);
  CHECK(inputs("a,b\n1,\nNA,?\n", {.fill = -0.5}) == Floats{1, -0.5f, -0.5f, -0.5f});
  CHECK(csv_refusal("a,b\n1,\n", {.target = "b", .fill = 0}) == "x.csv: row 2, column b: class is missing");
  CHECK(csv_refusal("a,b\n1,\n", {.target = "b", .target_is_class = false, .fill = 0}) ==
        "x.csv: row 2, column b" + missing);
  CHECK(csv_refusal("a,b\n1,2\n", {.fill = 1e39}) ==
        "x.csv: fill: expected a finite number float32 can hold, got 1e+39");
}

TEST_CASE("what is not a finite float32 is refused with row and column", "[fault-115]") {
  const auto cell = [](const std::string& text) { return csv_refusal("a;b\n1;2\n3;" + text + "\n"); };
  const std::string where = "x.csv: row 3, column b: expected ";
  CHECK(cell("abc") == where + "a number, got abc");
  CHECK(cell("0,5") == where + "a number, got 0,5; write the decimal mark as a point");
  CHECK(cell("1 2") == where + "a number, got 1 2");
  CHECK(cell("0x10") == where + "a number, got 0x10");
  CHECK(cell("+-1") == where + "a number, got +-1");
  CHECK(cell("nan") == where + "a finite number, got nan");
  CHECK(cell("-inf") == where + "a finite number, got -inf");
  CHECK(cell("1e400") == where + "a number float32 can hold, got 1e400");
  CHECK(cell("1e39") == where + "a number float32 can hold, got 1e39");
  CHECK(cell("3.4e38") == "no error");
}

TEST_CASE("rows of another length and files without data are refused") {
  CHECK(csv_refusal("a,b\n1,2\n3\n") == "x.csv: row 3: expected 2 fields as in row 1, got 1");
  CHECK(csv_refusal("a,b\n1,2,3\n") == "x.csv: row 2: expected 2 fields as in row 1, got 3");
  CHECK(csv_refusal("") == "x.csv: file is empty");
  CHECK(csv_refusal("\n\r\n") == "x.csv: file is empty");
  CHECK(csv_refusal("a,b\n") == "x.csv: no rows of data after the header");
  CHECK(csv_refusal(std::string(10000000, ',') + "\n") == "x.csv: row 1: too many columns: expected at most 16384");
  CHECK(csv_refusal("\"" + std::string(20000000, 'x') + "\"\n") ==
        "x.csv: row 1: record is too long: expected at most 16 MiB; is a closing quote missing?");
}

TEST_CASE("classes that are numbers are sorted as numbers, and known classes keep their order") {
  CHECK(parse("1,10\n2,9\n3,10\n4,-1\n", {.target = "1"}).labels == Names{"-1", "9", "10"});
  CHECK(parse("1,10\n2,9\n3,10\n4,-1\n", {.target = "1"}).targets.to_vector<std::int64_t>() == Indices{2, 1, 2, 0});
  CHECK(parse("1,10\n2,9\n3,b\n", {.target = "1"}).labels == Names{"10", "9", "b"});
  const CsvTable known = parse(kIris, {.target = "species", .labels = {"virginica", "setosa", "other", "fancy"}});
  CHECK(known.targets.to_vector<std::int64_t>() == Indices{1, 0, 1, 3, 0});
  CHECK(known.labels == Names{"virginica", "setosa", "other", "fancy"});
  CHECK(csv_refusal(kIris, {.target = "species", .labels = {"setosa", "virginica"}}) ==
        "x.csv: row 5, column species: unknown class: expected one of the 2 known, got fancy");
}

TEST_CASE("a locale with a decimal comma changes nothing", "[fault-115]") {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  const bool changed =
      std::setlocale(LC_ALL, "de_DE.UTF-8") || std::setlocale(LC_ALL, "de_DE") || std::setlocale(LC_ALL, "fr_FR.UTF-8");
  CHECK(inputs("0.5,1.25\n") == Floats{0.5f, 1.25f});
  CHECK(csv_refusal("a;b\n1;0,5\n") ==
        "x.csv: row 2, column b: expected a number, got 0,5; write the decimal mark as a point");
  std::setlocale(LC_ALL, before.c_str());
  if (!changed) WARN("no locale with a decimal comma is installed");
}

TEST_CASE("a file larger than the reader's chunk is read whole, and reading stops at the first bad row") {
  const TempFolder folder;
  std::string text = "a,b,\"c\"\n";
  for (int i = 0; i < 20011; ++i)
    text +=
        std::to_string(i) + "," + std::to_string(i % 7) + ".5,\"" + std::string(std::size_t(i % 13), 'x') + "z\"\r\n";
  const CsvTable table = load_csv(folder.write("x.csv", text), {.target = "c"});
  REQUIRE(table.inputs.shape() == Shape{20011, 2});
  CHECK(table.labels.size() == 13);
  const float* values = table.inputs.data<float>();
  const std::int64_t* classes = table.targets.data<std::int64_t>();
  bool equal = true;
  for (int i = 0; i < 20011; ++i) {
    equal &= values[2 * i] == float(i) && values[2 * i + 1] == float(i % 7) + 0.5f;
    equal &= table.labels[std::size_t(classes[i])].size() == std::size_t(i % 13) + 1;
  }
  CHECK(equal);
}
