// Form: multipart/form-data (RFC 7578), as a browser sends the fields and files of a form.
//
//   Form form;
//   form.add("title", "A cat").add_file("picture", "cat.jpg");
//   client.send(Request::post(url, Body()).set_form(form));
//
// Streamed: files are read while they are sent, and again for each attempt. It can be sent again as
// often as every part of it can be.
#pragma once

#include <httpretry/body.hpp>
#include <httpretry/headers.hpp>

#include <string>
#include <vector>

namespace httpretry {

struct HTTPRETRY_API FormPart {
  FormPart();
  FormPart(std::string field, Body content);
  ~FormPart();
  FormPart(const FormPart&);
  FormPart(FormPart&&) noexcept;
  FormPart& operator=(const FormPart&);
  FormPart& operator=(FormPart&&) noexcept;

  std::string name;
  Body body;
  std::string file_name;     // empty: a field, not a file
  std::string content_type;  // empty: text for a field; for a file what its ending says
  Headers headers;           // further ones; a Content-Type among them is the one that counts
  // Several files in one field, as multipart/mixed; `body` and `file_name` are not looked at then.
  std::vector<FormPart> files;
};

class HTTPRETRY_API Form {
 public:
  Form();  // with a boundary of its own, that nobody can foresee
  ~Form();
  Form(const Form&);
  Form(Form&&) noexcept;
  Form& operator=(const Form&);
  Form& operator=(Form&&) noexcept;

  Form& add(std::string name, std::string value);
  // A file of this machine, under its own name without the folders.
  Form& add_file(std::string name, std::string path);
  // Throws std::invalid_argument for a NUL byte in a name, and for a content type that could not
  // stand in a header.
  Form& add(FormPart part);

  [[nodiscard]] Body body() const;
  [[nodiscard]] std::string content_type() const;  // with the boundary

 private:
  std::string boundary_;
  std::vector<FormPart> parts_;
};

}  // namespace httpretry
