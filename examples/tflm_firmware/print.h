/* How the application speaks; a file of its own for each kind of board. */
#ifndef PRINT_H
#define PRINT_H

#ifdef __cplusplus
extern "C" {
#endif

void print(const char *text);

#ifdef __cplusplus
}
#endif

#endif
