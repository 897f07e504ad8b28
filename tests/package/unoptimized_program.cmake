# Compiles the program without optimizing it, and the headers that its sources share once: what it shows is that the
# program can be built.
cmake_language(DEFER CALL target_compile_options httpretry_cli PRIVATE -O0)
cmake_language(DEFER CALL target_precompile_headers httpretry_cli PRIVATE
               <httpretry/httpretry.hpp> <httpretry/testing/testing.hpp>)
