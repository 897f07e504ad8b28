#include "content_codings.hpp"

#include "lib/core/base/text.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <new>

namespace httpretry {

ContentCoder::~ContentCoder() = default;

namespace {

// Decodes and encodes gzip (RFC 1952).
class Gzip final : public ContentCoder {
 public:
  using Function = int(z_stream*, int flush);
  Gzip(Function* code, Function* end) : run_(code), end_(end) {}
  ~Gzip() override { end_(&stream, 0); }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  Step run(std::string_view& in, std::span<char> out, bool last) override {
    // zlib declares its input const only with the macro ZLIB_CONST, but never writes to it. Its
    // sizes have 32 bits, so a call may take only a part of `in` or `out`.
    const auto given = static_cast<uInt>(std::min(in.size(), kMostBytes));
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream.avail_in = given;
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(std::min(out.size(), kMostBytes));
    const auto room = stream.avail_out;
    const int result = run_(&stream, last && given == in.size() ? Z_FINISH : Z_NO_FLUSH);
    in.remove_prefix(given - stream.avail_in);
    return {room - stream.avail_out, state_after(result)};
  }

  z_stream stream{};

 private:
  static constexpr std::size_t kMostBytes = std::size_t{1} << 30U;

  State state_after(int result) {
    if (result == Z_STREAM_END) {
      if (run_ == &inflate) inflateReset(&stream);  // RFC 1952: another gzip member may follow
      return State::End;
    }
    // Z_BUF_ERROR only means that zlib needs more input, or more room.
    if (result != Z_OK && result != Z_BUF_ERROR) return State::Corrupt;
    return stream.avail_out == 0 ? State::MoreOutput : State::MoreInput;
  }

  Function* run_;
  Function* end_;
};

constexpr int kGzipOnly = 16 + MAX_WBITS;

std::unique_ptr<ContentCoder> gzip_decoder() {
  auto made =
      std::make_unique<Gzip>(&inflate, [](z_stream* stream, int) { return inflateEnd(stream); });
  if (inflateInit2(&made->stream, kGzipOnly) != Z_OK) throw std::bad_alloc();
  return made;
}

std::unique_ptr<ContentCoder> gzip_encoder() {
  auto made =
      std::make_unique<Gzip>(&deflate, [](z_stream* stream, int) { return deflateEnd(stream); });
  constexpr int kDefaultMemLevel = 8;  // zlib's default, for which its header has no name
  if (deflateInit2(&made->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipOnly, kDefaultMemLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
  return made;
}

const ContentCoding& gzip() {
  static const ContentCoding coding = [] {
    ContentCoding made;
    made.name = "gzip";
    made.decoder = gzip_decoder;
    made.encoder = gzip_encoder;
    return made;
  }();
  return coding;
}

Error encoder_failed(const CheckedCoder& encoder) {
  std::string message = "the body cannot be compressed";
  if (encoder.problem() != nullptr) message.append(": its coding ").append(encoder.problem());
  return Error(Errc::Internal, std::move(message));
}

constexpr std::size_t kPiece = 16384;

// Reads the bytes of another body (the source), and encodes them.
class EncodingReader final : public BodyReader {
 public:
  EncodingReader(std::unique_ptr<BodyReader> source, std::unique_ptr<ContentCoder> encoder)
      : source_(std::move(source)), encoder_(std::move(encoder)) {}

  // Writes the next encoded bytes into `into`. Returns their number, or 0 at the end. Returns
  // kPause if the source has no more bytes for now, and an error if it cannot be read or the
  // encoder fails.
  Result<std::size_t> read(std::span<char> into) override {
    // The encoder collects its input, so it may write nothing for several pieces.
    while (!ended_) {
      // `more_output_`: the encoder has more output than fitted into `into`, so it needs no input.
      if (input_.empty() && !source_ended_ && !more_output_) {
        auto count = source_->read(piece_);
        if (!count || *count == kPause) return count;
        source_ended_ = *count == 0;
        input_ = {piece_.data(), *count};
      }
      // Encodes the front of `input_`, and removes it. After the last input, writes the trailer.
      const auto step = encoder_.run(input_, into, /*last=*/source_ended_);
      if (step.state == ContentCoder::State::Corrupt) return encoder_failed(encoder_);
      ended_ = step.state == ContentCoder::State::End;
      more_output_ = step.state == ContentCoder::State::MoreOutput;
      if (step.written > 0) return step.written;
    }
    return std::size_t{0};
  }
  PausingReader* pausing() override { return source_->pausing(); }

 private:
  std::unique_ptr<BodyReader> source_;
  CheckedCoder encoder_;
  std::array<char, kPiece> piece_{};
  std::string_view input_;  // the part of `piece_` that is not encoded yet
  bool source_ended_ = false;
  bool more_output_ = false;
  bool ended_ = false;
};

// Returns the encoded bytes, or an error if the encoder fails.
Result<std::string> encode(std::string_view bytes, CheckedCoder encoder) {
  std::string all;
  std::array<char, kPiece> piece{};
  for (;;) {
    const auto step = encoder.run(bytes, piece, /*last=*/true);
    if (step.state == ContentCoder::State::Corrupt) return encoder_failed(encoder);
    all.append(piece.data(), step.written);
    if (step.state == ContentCoder::State::End) return all;
  }
}

// Returns the body, encoded. Encodes a small body in memory at once, so that the request has a
// Content-Length. A large one is encoded while it is sent, because encoding all of it would hold up
// the loop. Returns an error if the encoder fails.
Result<Body> encoded_body(const Body& body, const ContentCoding& coding) {
  constexpr std::size_t kMostAtOnce = std::size_t{1} << 20U;
  if (body.bytes() != nullptr && body.bytes()->size() <= kMostAtOnce) {
    auto bytes = encode(*body.bytes(), CheckedCoder(coding.encoder()));
    if (!bytes) return std::move(bytes).error();
    return Body(*std::move(bytes));
  }
  // Each send opens the body again, and makes a new encoder for it.
  return Body::reopened([body, make = coding.encoder]() -> Result<std::unique_ptr<BodyReader>> {
    auto source = body.open();
    if (!source) return std::move(source).error();
    return std::unique_ptr<BodyReader>(
        std::make_unique<EncodingReader>(*std::move(source), make()));
  });
}

}  // namespace

const ContentCoding* find_coding(std::string_view name, const std::vector<ContentCoding>& more) {
  if (equal_ignoring_case(name, "gzip") || equal_ignoring_case(name, "x-gzip")) return &gzip();
  const auto found = std::ranges::find_if(
      more, [&](const ContentCoding& coding) { return equal_ignoring_case(coding.name, name); });
  return found == more.end() ? nullptr : &*found;
}

std::string names_of_codings(const std::vector<ContentCoding>& more) {
  std::string names = "gzip";
  for (const auto& coding : more) names += ", " + coding.name;
  return names;
}

// Returns the request with its body encoded as RequestOptions::compress_with requests. Returns the
// request unchanged if it has no body, or if its headers describe the bytes of the unencoded body.
// `more` are the codings that the client supports besides gzip.
Result<Request> encoded(const Request& request, const std::vector<ContentCoding>& more) {
  const auto& name = request.options().compress_with;
  const auto* coding = find_coding(name, more);
  if (coding == nullptr) {
    return Error(Errc::InvalidRequest, "the body cannot be compressed with \"" + printable(name) +
                                           "\"; this client supports " + names_of_codings(more));
  }
  constexpr std::array kDescribeBytes{"Content-Encoding",    "Content-Digest", "Content-MD5",
                                      "Content-Range",       "Digest",         "Repr-Digest",
                                      "x-amz-content-sha256"};
  const auto is_set = [&](const char* header) { return request.headers().contains(header); };
  if (!request.body().present() || std::ranges::any_of(kDescribeBytes, is_set)) return request;
  auto body = encoded_body(request.body(), *coding);
  if (!body) return std::move(body).error();
  Request changed = request;
  changed.set_body(*std::move(body)).set_header("Content-Encoding", coding->name);
  return changed;
}

}  // namespace httpretry
