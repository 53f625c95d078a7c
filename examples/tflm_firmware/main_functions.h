// The application as an Arduino sketch has it.
#ifndef MAIN_FUNCTIONS_H
#define MAIN_FUNCTIONS_H

void setup(); // once
void loop();  // for each picture

#endif
