# Homebrew: `make dist`, then `brew install --build-from-source packaging/specscope.rb`.
class Specscope < Formula
  DIST = File.expand_path("../build/dist", __dir__)
  VERSION = File.read(File.expand_path("../debian/changelog", __dir__))[/\(([0-9.]+)/, 1]

  desc "Oscilloscope for speculative decoding of language models"
  homepage "file://#{DIST}"
  url "file://#{DIST}/specscope-#{VERSION}.tar.gz"
  sha256 File.exist?("#{DIST}/SHA256SUMS") ? File.read("#{DIST}/SHA256SUMS")[/\h{64}/] : "0" * 64
  license all_of: ["MIT", "CC0-1.0"]

  depends_on "pkgconf" => :build
  depends_on "cairo"
  depends_on "cjson"
  depends_on "curl"
  depends_on "fontconfig"
  depends_on "libcsv"
  depends_on "ncurses"
  depends_on "openblas"
  depends_on "pcre2"
  depends_on "utf8proc"

  on_macos do
    depends_on "libomp"
  end

  def install
    args = ["PREFIX=#{prefix}", "NVCC=", "BLAS_LIBS=-lopenblas"]
    # Apple's clang takes OpenMP as the preprocessor's, with libomp's library named.
    args << "OPENMP=-Xpreprocessor -fopenmp -lomp" if OS.mac?
    system "make", *args, "all"
    system "make", *args, "install"
  end

  test do
    assert_match "specscope #{version}", shell_output("#{bin}/specscope --version")
    assert_match "lossless", shell_output("#{bin}/specscope bench -n 8 --repeat 1 --policy layerskip")
  end
end
