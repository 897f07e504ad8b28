#include "threads.hpp"

#include <Poco/Net/HTTPClientSession.h>
#include <Poco/Net/HTTPRequest.h>
#include <Poco/Net/HTTPResponse.h>
#include <Poco/StreamCopier.h>

namespace bench {

using namespace Poco::Net;  // NOLINT

std::unique_ptr<Peer> make_peer(const Target& target, int width) {
  return std::make_unique<Threads>(width, [&target] {
    auto session = std::make_shared<HTTPClientSession>(target.host, target.port);
    session->setKeepAlive(true);
    return [session, path = target.path] {
      HTTPRequest request(HTTPRequest::HTTP_GET, path, HTTPMessage::HTTP_1_1);
      session->sendRequest(request);
      HTTPResponse response;
      std::string body;
      Poco::StreamCopier::copyToString(session->receiveResponse(response), body);
      check_answer(response.getStatus(), response.has("Content-Type"), !body.empty());
    };
  });
}

}  // namespace bench
