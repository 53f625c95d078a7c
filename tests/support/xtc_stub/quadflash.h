/* A STUB of XMOS's libquadflash, for tests on an ordinary machine: the flash is the file
 * $STUB_FLASH. */
#ifndef STUB_QUADFLASH_H
#define STUB_QUADFLASH_H

typedef struct {
    int qspiCS, qspiSCLK, qspiSIO, qspiClkblk;
} fl_QSPIPorts;

typedef struct {
    int any;
} fl_QuadDeviceSpec;

#define FL_QUADDEVICE_DEFAULT {0}

int fl_connectToDevice(fl_QSPIPorts *ports, fl_QuadDeviceSpec specs[], unsigned count);
int fl_readData(unsigned offset, unsigned size, unsigned char data[]);

#endif
