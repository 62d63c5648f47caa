/**
 * CLBlast, a third-party library for products of matrices, opened at run time if it is installed. Names and values are those of
 * its interface for C.
 */
#pragma once
#include <cstddef>
#include <string>

#include "cl.h"
#include "product.h"

/** Opens the library, once per process; an empty string, or why it could not. Thread-safe. */
std::string OpenBlast(const std::string& path);

/** The buffers of a product. */
struct Matrices {
  cl_mem a, b, c;
};

/** Throws where the library is not open. */
void NeedBlast();

/** Enqueues a product, of which everything has been checked; throws ClError with CLBlast's code, whose `call` begins with CLBlast. */
void Enqueue(const Product& product, const Matrices& matrices, cl_command_queue queue, cl_event* event);
