/* How the application speaks; a file of its own for each kind of board. */
#ifndef PRINT_H
#define PRINT_H

void print(const char *text);

#endif
